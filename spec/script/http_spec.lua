-- k8s.http: requests to servers that are no part of the cluster.
local files = require "support.files"
local cli = require "support.cli"
local host = require "support.host"
local k8s = require "perilune"
local stub = require "support.stub"
local tcp = require "support.tcp"

-- A script that asks; what it prints is what came.
local function ask(text, flags)
	return host.start { kubeconfig = cli.kubeconfig(files.folder()), flags = flags, script = [[
		local function show(answer, err)
			print(answer and ("%d %s"):format(answer.status, answer.body) or ("%s|%s"):format(err.reason, err.message))
			return answer, err
		end
		k8s.main(function()
			]] .. text .. [[

			print "end"
		end)
	]] }
end

describe("k8s.http.request", function()
	local server
	before_each(function() server = stub.listen() end)
	after_each(function() server:close() end)

	it("sends what it was given, and gives the whole answer", function()
		local run = ask(([[
			local answer = show(k8s.http.request { url = "%s/hook?a=b", method = "POST", body = "hello", timeout = 10,
				headers = { ["Content-Type"] = "text/plain", Authorization = "Bearer secret", ["X-Many"] = { "1", "2" }, ["X-Empty"] = "" } })
			print(answer.headers["x-one"], answer.headers["x-two"], answer.headers["X-One"])
		]]):format(server.url))
		local request = server:accept()
		assert.equal("POST", request.method)
		assert.equal("/hook?a=b", request.target)
		assert.equal("hello", request.body)
		assert.equal("text/plain", request.headers["content-type"])
		assert.equal("Bearer secret", request.headers.authorization)
		assert.equal("", request.headers["x-empty"])
		assert.matches("X%-Many: 1\r\n", request.raw)
		assert.matches("X%-Many: 2\r\n", request.raw)
		assert.matches("^perilune/", request.headers["user-agent"])
		request:reply(201, { ["X-One"] = "a", ["X-Two"] = { "b", "c" } }, "made")
		assert.same({ "201 made", "a\tb, c\tnil" }, run:lines_until "end")
		run:stop()
	end)

	it("is a GET unless said otherwise, without a body, and without anything of the cluster's", function()
		local run = ask(([[ show(k8s.http.request { url = "%s" }) ]]):format(server.url))
		local request = server:accept()
		assert.equal("GET", request.method)
		assert.equal("", request.body)
		assert.is_nil(request.headers.authorization)
		request:reply(200, {}, "")
		assert.same({ "200 " }, run:lines_until "end")
		run:stop()
	end)

	it("takes any status for an answer, and follows no redirect", function()
		local run = ask(([[
			for _ = 1, 2 do
				show(k8s.http.request { url = "%s" })
			end
		]]):format(server.url))
		server:accept():reply(302, { location = server.url .. "/elsewhere" }, "there")
		server:accept():reply(500, {}, "broken")
		assert.same({ "302 there", "500 broken" }, run:lines_until "end")
		run:stop()
	end)

	it("gives what the network does as an err", function()
		local closed = tcp.listen()
		closed:close()
		local run = ask(([[
			show(k8s.http.request { url = "http://127.0.0.1:%d" })
			show(k8s.http.request { url = "ftp://127.0.0.1" })
			show(k8s.http.request { url = "http://a b" })
			show(k8s.http.request { url = "file:///etc/passwd" })
			local _, err = show(k8s.http.request { url = "%s", timeout = 0.2 })
			print(err.retryable, err.outcome_unknown, err.code)
			_, err = show(k8s.http.request { url = "%s", method = "POST" })
			print(err.retryable, err.outcome_unknown)
		]]):format(closed.port, server.url, server.url))
		server:accept()
		server:accept().peer:close()
		local lines = run:lines_until "end"
		assert.matches("^Connection|", lines[1])
		assert.matches("^BadRequest|.*neither http", lines[2])
		assert.matches("^BadRequest|.*URL", lines[3])
		assert.matches("^BadRequest|", lines[4])
		assert.matches("^Timeout|no answer within 0.2 s", lines[5])
		assert.equal("true\tfalse\tnil", lines[6])
		assert.matches("^Connection|", lines[7])
		assert.equal("true\ttrue", lines[8])
		run:stop()
	end)

	it("does not take an answer that is too large", function()
		local run = ask(([[
			for _ = 1, 3 do
				show(k8s.http.request { url = "%s" })
			end
		]]):format(server.url))
		server:accept().peer:write("HTTP/1.1 200 OK\r\n" .. ("a:b\r\n"):rep(1001) .. "\r\n")
		server:accept().peer:write(("HTTP/1.1 200 OK\r\nx-long: %s\r\n\r\n"):format(("a"):rep(70000)))
		local peer = server:accept().peer
		peer:write "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
		pcall(function()
			for _ = 1, 20 do
				peer:write("100000\r\n" .. ("a"):rep(0x100000) .. "\r\n")
			end
		end)
		local lines = run:lines_until "end"
		assert.matches("^TooLarge|the head of the answer", lines[1])
		assert.matches("^TooLarge|the head of the answer", lines[2])
		assert.matches("^TooLarge|the answer is larger than 16777216 bytes", lines[3])
		run:stop()
	end)

	it("does not trust a server that the system's authorities don't know", function()
		local cert, key = files.certificate(files.folder())
		local process = require "support.process"
		local child = process.start { process.build() .. "/perilune", "sandbox", "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key }
		local kubeconfig = child:line(20)
		local url = files.read(kubeconfig):match "server: (%S+)"
		local run = ask(([[ show(k8s.http.request { url = "%s/version" }) ]]):format(url))
		assert.matches("^Connection|.*certificate", run:lines_until("end")[1])
		run:stop()
		child:kill "TERM"
		child:wait(20)
	end)

	it("ends with its program, at once", function()
		local run = ask(([[ k8s.on_shutdown(function() print "stopping" end) k8s.http.request { url = "%s", timeout = 0 } ]]):format(server.url),
			{ "--grace-period", "0s" })
		local request = server:accept()
		run.child:kill "TERM"
		assert.equal(0, run:wait())
		request.peer:close()
	end)

	it("refuses misuse at the script's line, and shows no value of a header", function()
		for message, options in pairs {
			["url is missing"] = {},
			["unknown option 'header', did you mean 'headers'"] = { url = "http://a", header = {} },
			["a header's name is"] = { url = "http://a", headers = { ["a b"] = "c" } },
			["header X%-A must be one line of text"] = { url = "http://a", headers = { ["X-A"] = "secret\r\nX-B: c" } },
			["header X%-C must be one line of text"] = { url = "http://a", headers = { ["X-C"] = { "a", "secret\n" } } },
			["header X%-D must be one line of text"] = { url = "http://a", headers = { ["X-D"] = 5 } },
			["'X%-E' holds a NUL"] = { url = "http://a", headers = { ["X-E"] = "secret\0" } },
			["header content%-length can't be set"] = { url = "http://a", headers = { ["content-length"] = "5" } },
			["headers must be a table"] = { url = "http://a", headers = "X-A: b" },
			["'url' holds a NUL"] = { url = "http://a\0b" },
			["method must be a word"] = { url = "http://a", method = "GET /\r\n" },
			["body must be a string, not a table"] = { url = "http://a", body = {} },
			["body is larger than 16 MiB"] = { url = "http://a", body = ("a"):rep(17000000) },
			["'timeout' must be a number"] = { url = "http://a", timeout = "5" },
		} do
			local ok, err = pcall(k8s.http.request, options)
			assert.is_false(ok, message)
			assert.matches("http_spec.lua:%d+: .*" .. message, err)
			assert.is_nil(err:find("secret", 1, true))
		end
	end)
end)
