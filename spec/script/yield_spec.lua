-- A host call waits wherever Lua code runs, and says clearly where it can't. These specs run inside the host, so they are the script.
local k8s = require "perilune"

local function wait(...)
	k8s.sleep(0.001)
	return ...
end

describe("a host call waits", function()
	it("inside pcall and xpcall, results and errors passing through", function()
		assert.same({ true, 1, nil, 3 }, { pcall(wait, 1, nil, 3) })
		assert.same({ true, "x" }, { xpcall(wait, error, "x") })
		local ok, err = pcall(function()
			wait()
			error("afterwards", 0)
		end)
		assert.is_false(ok)
		assert.equal("afterwards", err)
	end)

	it("inside metamethods", function()
		local t = setmetatable({}, {
			__index = function(_, key) return wait(key) end,
			__newindex = function(self, key, value) rawset(self, key, wait(value)) end,
			__call = function(_, x) return wait(x) end,
			__concat = function() return wait "joined" end,
			__eq = function() return wait(true) end,
			__lt = function() return wait(true) end,
			__add = function() return wait(7) end,
		})
		assert.equal("name", t.name)
		t.set = 5
		assert.equal(5, rawget(t, "set"))
		assert.equal(1, t(1))
		assert.equal("joined", t .. "x")
		assert.equal(7, t + 1)
		assert.is_true(t < setmetatable({}, getmetatable(t)))
		assert.is_true(t == setmetatable({}, getmetatable(t)))
	end)

	it("inside iterators", function()
		local seen = {}
		for i in function(_, i) return wait(i < 3 and i + 1 or nil) end, nil, 0 do
			seen[#seen + 1] = i
		end
		assert.same({ 1, 2, 3 }, seen)
	end)

	it("inside the script's own coroutines, which keep their own yields", function()
		local numbers = coroutine.wrap(function(first)
			local got = first
			for i = 1, 3 do
				got = coroutine.yield(wait(i + got))
			end
			return "end"
		end)
		assert.equal(11, numbers(10))
		assert.equal(22, numbers(20))
		assert.equal(33, numbers(30))
		assert.equal("end", numbers())
	end)

	it("through many levels of coroutines", function()
		local function nest(n)
			if n == 0 then
				return wait "bottom"
			end
			return coroutine.wrap(nest)(n - 1)
		end
		assert.equal("bottom", nest(150))
	end)

	it("while others run", function()
		local order = {}
		k8s.on_synced(function()
			order[#order + 1] = "other"
		end)
		k8s.sleep(0.02)
		order[#order + 1] = "this"
		assert.same({ "other", "this" }, order)
	end)
end)

describe("a coroutine that waits for the host", function()
	it("can't be resumed by anyone else", function()
		local co = coroutine.create(function() return wait "answer" end)
		local result
		k8s.on_synced(function()
			result = { coroutine.resume(co, "false answer") }
		end)
		assert.same({ true, "answer" }, { coroutine.resume(co) })
		k8s.sleep(0.02)
		assert.is_false(result[1])
		assert.matches("cannot resume", result[2])
	end)

	it("can't be resumed by anyone else where it is a handler's own", function()
		local co, answer
		k8s.on_synced(function()
			co = coroutine.running()
			answer = wait "answer"
		end)
		k8s.sleep(0)
		assert.same({ false, "cannot resume a coroutine of the host" }, { coroutine.resume(co, "false answer") })
		k8s.sleep(0.02)
		assert.equal("answer", answer)
	end)

	it("has waited in vain where its stack has no room to pass that on", function()
		for padding = 0, 30 do
			local tried, result = false, nil
			local co = coroutine.create(function() return wait "answer" end)
			local function dive(...)
				pcall(dive, ...)
				if not tried then
					tried, result = true, { pcall(coroutine.resume, co) }
				end
				return 1
			end
			dive(unpack({}, 1, padding))
			local answered = result[1] and result[2] and result[3] == "answer"
			assert(answered or tostring(result[2]):find "stack overflow" or tostring(result[3]):find "stack overflow",
				padding .. ": " .. tostring(result[2]))
			local start = k8s.now()
			k8s.sleep(0.01)
			assert(k8s.now() - start > 0.005, "the lost call has ended another one")
		end
	end)
end)

describe("a host call says that it can't wait", function()
	local function refused(f, ...)
		local ok, err = pcall(f, ...)
		assert.is_false(ok)
		assert.matches("k8s%.sleep waits for the host, which does not work inside table%.sort, string%.gsub, require", err)
	end

	it("inside table.sort", function()
		refused(table.sort, { 2, 1 }, function() return wait(true) end)
	end)

	it("inside a coroutine that was resumed there", function()
		refused(table.sort, { 2, 1 }, function() return coroutine.wrap(wait)(true) end)
		refused(table.sort, { 2, 1 }, function()
			return coroutine.wrap(function() return coroutine.wrap(wait)(true) end)()
		end)
		local co = coroutine.wrap(function() return wait(coroutine.yield()) end)
		table.sort({ 2, 1 }, function() return co() end)
		assert.equal("later", co "later")
	end)

	it("inside string.gsub", function()
		refused(string.gsub, "x", "x", function() return wait "y" end)
	end)

	it("inside require", function()
		package.preload["waits.at.load"] = function() wait() end
		refused(require, "waits.at.load")
	end)

	it("and goes on to work afterwards", function()
		assert.equal(1, wait(1))
	end)
end)

describe("busted runs inside the host", function()
	local calls = {}

	before_each(function()
		calls[#calls + 1] = wait "before"
	end)

	after_each(function()
		calls[#calls + 1] = wait "after"
	end)

	it("with waiting in before_each, the body and finally", function()
		finally(function()
			calls[#calls + 1] = wait "finally"
		end)
		calls[#calls + 1] = wait "body"
	end)

	it("in the right order", function()
		assert.same({ "before", "body", "finally", "after", "before" }, calls)
	end)
end)
