-- The HTTP server that answers under full control (core/net/exchange.h), with the curl program as its client.
local files = require "support.files"
local process = require "support.process"
local tcp = require "support.tcp"

local SECONDS = 20

describe("the exchange", function()
	local driver, url, port, clients

	local function begin(...)
		driver = process.start { process.driver "exchange_driver", "127.0.0.1:0", ... }
		port = driver:wait_for("listening (%d+)", SECONDS)
		url, clients = "http://127.0.0.1:" .. port, {}
	end

	before_each(function()
		begin()
	end)

	after_each(function()
		driver:write "quit\n"
		assert.equal(0, (driver:wait(SECONDS)), driver:stderr())
		for _, client in ipairs(clients) do
			client:close()
		end
	end)

	local function order(...)
		driver:write(table.concat({ ... }, "\n") .. "\n")
	end


	local function curl(path, ...)
		local command = { "curl", "--silent", "--show-error", "--no-buffer", "--noproxy", "*", "--max-time", SECONDS }
		for _, word in ipairs { ... } do
			command[#command + 1] = word
		end
		command[#command + 1] = url .. path
		local client = process.start(command)
		clients[#clients + 1] = client
		return client
	end

	-- The same, when the request has come.
	local function start(...)
		local client = curl(...)
		driver:wait_for("request [^\n]*\n", SECONDS)
		return client
	end

	it("gives a request whole, and takes the answer whole", function()
		local client = curl("/a%20b?x=1%202&y&z=", "--include")
		assert.equal("request GET /a b x=1 2;y=;z=; ", (driver:wait_for("(request [^\n]*)\n", SECONDS)))
		client:close()
		client = start("/body", "--include", "--data", "hello")
		order "answer 201 the answer"
		assert.equal(0, (client:wait(SECONDS)))
		local head, body = client:stdout():match "^(.-)\r\n\r\n(.*)$"
		assert.truthy(head:find "^HTTP/1.1 201 Created")
		assert.truthy(head:find("X-Spec: a: b", 1, true))
		assert.truthy(head:find("Content-Length: 10", 1, true))
		assert.equal("the answer", body)
		driver:wait_for("gone /body", SECONDS)
	end)

	it("takes large bodies up to its limit", function()
		local path = files.write(files.folder() .. "/body", ("x"):rep(1000000))
		local client = curl("/large", "--data-binary", "@" .. path)
		driver:wait_for("request POST /large  1000000 bytes\n", SECONDS)
		order "answer 200 ok"
		assert.equal(0, (client:wait(SECONDS)))
		files.write(path, ("x"):rep(2000000))
		client = curl("/larger", "--data-binary", "@" .. path)
		driver:wait_for("request POST /larger  too large\n", SECONDS)
		order "answer 413 no"
		assert.equal(0, (client:wait(SECONDS)))
	end)

	it("streams: the head at once, each piece when it is pushed", function()
		local client = start("/stream", "--verbose")
		order "open 200"
		client:wait_for("< Transfer%-Encoding: chunked", SECONDS)
		order("push one", "push two")
		client:wait_for("onetwo", SECONDS)
		order("push three")
		client:wait_for("three", SECONDS)
		order "end"
		assert.equal(0, (client:wait(SECONDS)))
		driver:wait_for("gone /stream", SECONDS)
	end)

	it("knows when all has left", function()
		local client = start "/idle"
		order "idle"
		driver:wait_for("idle no", SECONDS)
		order("open 200", "fill 5000000")
		local deadline = process.now() + SECONDS
		repeat
			order "idle"
			local is = driver:wait_for("idle (%a+)", SECONDS)
			client:pump(0)
			client:take(client.out)
			assert.is_true(process.now() < deadline)
		until is == "yes"
		order "end"
		assert.equal(0, (client:wait(SECONDS)))
		assert.equal(5000000, #client:stdout())
	end)

	it("is told when the client closes, also while nothing is sent", function()
		for _, orders in ipairs { {}, { "open 200", "push x" } } do
			local client = start "/gone"
			order(unpack(orders))
			if orders[1] then
				client:wait_for("x", SECONDS)
			end
			client:kill "KILL"
			driver:wait_for("gone /gone", SECONDS)
		end
	end)

	it("gives back the descriptors of streams that ended, also while another connection is idle", function()
		local idle = tcp.connect(port)
		idle:write "GET /idle HTTP/1.1\r\nHost: x\r\n\r\n"
		driver:wait_for("request GET /idle [^\n]*\n", SECONDS)
		order "answer 200 ok"
		idle:read_until("ok", SECONDS)
		local function descriptors()
			return select(2, files.output_of({ "ls", ("/proc/%d/fd"):format(driver.pid) }):gsub("\n", ""))
		end
		local before = descriptors()
		for i = 1, 10 do
			local peer = tcp.connect(port)
			peer:write(("GET /%d HTTP/1.1\r\nHost: x\r\n\r\n"):format(i))
			driver:wait_for(("request GET /%d [^\n]*\n"):format(i), SECONDS)
			order("open 200", "push x")
			peer:read_until("x", SECONDS)
			peer:close()
			driver:wait_for(("gone /%d\n"):format(i), SECONDS)
		end
		local deadline = process.now() + SECONDS
		repeat
			local now = descriptors()
			assert(process.now() < deadline, ("%d are open, and were %d"):format(now, before))
		until now <= before
		idle:close()
	end)

	it("cuts, inside a body and inside a stream", function()
		local client = start "/cut"
		order("cut 3", "answer 200 abcdef")
		assert.equal(18, (client:wait(SECONDS))) -- "partial file"
		assert.equal("abc", client:stdout())
		client = start "/stream"
		order("open 200", "push abcdef", "cut here")
		assert.equal(18, (client:wait(SECONDS)))
		assert.equal("abcdef", client:stdout())
	end)

	it("resets, before an answer and inside a stream", function()
		local client = start "/reset"
		order "reset"
		assert.equal(56, (client:wait(SECONDS))) -- "failure in receiving"
		assert.truthy(client:stderr():find "reset by peer")
		client = start "/stream"
		order("open 200", "push abc")
		client:wait_for("abc", SECONDS)
		order "reset"
		assert.equal(56, (client:wait(SECONDS)))
	end)

	it("goes silent", function()
		local client = start "/silent"
		order("open 200", "push abc")
		client:wait_for("abc", SECONDS)
		order("silence", "push def", "end", "idle")
		driver:wait_for("idle yes", SECONDS)
		assert.equal("abc", client:stdout())
		client:kill "KILL"
		driver:wait_for("gone /silent", SECONDS)
	end)

	it("is slow", function()
		local client = start "/slow"
		local began = process.now()
		order("slow 2000", "answer 200 " .. ("x"):rep(1000))
		assert.equal(0, (client:wait(SECONDS)))
		local took = process.now() - began
		assert.is_true(took > 0.4, "it took " .. took .. " s")
		assert.equal(1000, #client:stdout())
	end)

	it("serves many streams at once", function()
		local many = {}
		for i = 1, 50 do
			many[i] = start "/many"
			order("open 200", "push " .. i .. ".")
			many[i]:wait_for(i .. "%.", SECONDS) -- orders are for the request that came last
		end
	end)

	it("speaks TLS", function()
		driver:write "quit\n"
		driver:wait(SECONDS)
		local cert, key = files.certificate(files.folder())
		begin(cert, key)
		url = "https://127.0.0.1:" .. port
		local client = start("/tls", "--cacert", cert)
		order("open 200", "push abc")
		client:wait_for("abc", SECONDS)
		client:kill "TERM"
		driver:wait_for("gone /tls", SECONDS)
		client = start("/tls", "--cacert", cert)
		order "answer 200 whole"
		assert.equal(0, (client:wait(SECONDS)))
		assert.equal("whole", client:stdout())
	end)
end)
