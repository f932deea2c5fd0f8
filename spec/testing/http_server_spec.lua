-- testing.http_server: a server that a function of the spec answers.
local files = require "support.files"
local k8s = require "perilune"
local process = require "support.process"
local testing = require "perilune.testing"

describe("testing.http_server", function()
	local server, seen, answer

	before_each(function()
		seen, answer = {}, nil
		server = testing.http_server(function(request)
			seen[#seen + 1] = request
			return answer
		end)
	end)

	after_each(function()
		server:close()
	end)

	it("shows a request whole, and answers what the function returns", function()
		answer = { status = 418, headers = { ["X-Pot"] = "tea" }, body = "short\0stout" }
		local got = assert(k8s.http.request {
			method = "PUT", url = server.url .. "/a%20b/c?d=e%2Bf", headers = { ["X-One"] = "1" }, body = "hel\0lo",
		})
		assert.equal(418, got.status)
		assert.equal("tea", got.headers["x-pot"])
		assert.equal("short\0stout", got.body)
		assert.equal("PUT", seen[1].method)
		assert.equal("/a b/c", seen[1].path)
		assert.same({ d = "e+f" }, seen[1].query)
		assert.equal("1", seen[1].headers["x-one"])
		assert.equal("hel\0lo", seen[1].body)
	end)

	it("answers 200 and nothing unless said otherwise", function()
		local got = assert(k8s.http.request { url = server.url })
		assert.same({ 200, "" }, { got.status, got.body })
	end)

	it("is waited for by settle, while the clock stands still", function()
		local script = files.write(files.folder() .. "/script.lua", ([[
			local k8s = require "perilune"
			k8s.on_synced(function()
				for i = 1, 3 do
					assert(k8s.http.request { url = "%s/" .. i, timeout = 1 })
				end
			end)
		]]):format(server.url))
		local cluster = testing.cluster()
		cluster:load(script)
		cluster:settle()
		assert.equal(3, #seen)
		assert.equal("/3", seen[3].path)
		assert.same({}, cluster:logs { level = "error" })
	end)

	it("answers 500 where the function fails, and says why in the log", function()
		local cluster = testing.cluster { quiet = true }
		local failing = testing.http_server(function() error "not today" end)
		local wrong = testing.http_server(function() return { stauts = 200 } end)
		for _, one in ipairs { failing, wrong } do
			assert.equal(500, assert(k8s.http.request { url = one.url, timeout = 0 }).status)
			one:close()
		end
		local errors = cluster:logs { level = "error" }
		assert.matches("http_server_spec.lua:%d+: not today", errors[1].msg)
		assert.matches("'stauts', did you mean 'status'", errors[2].msg)
	end)

	it("is gone when it has been closed, which is harmless again, and refused inside the function", function()
		local problem
		local own
		own = testing.http_server(function()
			problem = select(2, pcall(own.close, own))
		end)
		assert(k8s.http.request { url = own.url })
		assert.matches("can't be closed by the function", problem)
		own:close()
		own:close()
		local _, err = k8s.http.request { url = own.url }
		assert.equal("Connection", err.reason)
	end)

	it("takes a function", function()
		local ok, problem = pcall(testing.http_server, "hello")
		assert.is_false(ok)
		assert.matches("takes a function, not a string", problem)
	end)

	it("ends with the specs where nobody closes it", function()
		local spec = files.write(files.folder() .. "/open_spec.lua", [[
			it("leaves one open", function() require("perilune.testing").http_server(function() end) end)
		]])
		local code, _, err = process.run { process.build() .. "/perilune", "test", spec }
		assert.equal(0, code, err)
	end)
end)
