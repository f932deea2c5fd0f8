local http_driver = require "support.http_driver"
local process = require "support.process"

local SECONDS = 20

describe("the server #slow", function()
	local child, driver, url

	local function begin(address, ...)
		child = process.start { process.driver "server_driver", address or "127.0.0.1:0", ... }
		url = "http://127.0.0.1:" .. child:wait_for("listening (%d+)", SECONDS)
		driver = http_driver.start()
	end

	local function finish()
		child:kill "TERM"
		child:wait_for("ended within 0.9 s", SECONDS)
		assert.equal(0, (child:wait(SECONDS)), child:stderr())
		driver:quit()
	end

	local function start(path, method, fields)
		fields = fields or {}
		fields.url, fields.method = url .. path, method
		return driver:start(fields)
	end

	local function fetch(...)
		return driver:done(start(...))
	end

	it("makes pages where they are meant to be made", function()
		begin()
		assert.equal("on another thread", fetch("/threaded").body)
		assert.equal("on the loop", fetch("/loop").body)
		finish()
	end)

	it("gives a page its query values, and the page's status and content type to the client", function()
		begin()
		local id = start "/query?a=1%202&b=&verbose&x=y"
		assert.equal("application/x-query", driver:next("head", id).content_type)
		local done = driver:done(id)
		assert.equal(418, done.status)
		assert.equal("a=1 2;b=;verbose=;absent=NULL;", done.body)
		finish()
	end)

	it("answers a threaded page at once while the loop is blocked, and others with 503 within about a second", function()
		begin()
		local block = start "/block?seconds=4"
		child:wait_for("blocking", SECONDS)
		local waiting = {}
		for i = 1, 5 do
			waiting[i] = start "/loop"
		end
		local done = fetch "/threaded"
		assert.equal("on another thread", done.body)
		assert.is_true(done.took < 0.5, "took " .. done.took)
		for _, id in ipairs(waiting) do
			done = driver:done(id)
			assert.equal(503, done.status)
			assert.matches("busy", done.body)
			assert.is_true(done.took > 0.8 and done.took < 3, "took " .. done.took)
		end
		assert.equal("on the loop", driver:done(block).body) -- one that runs is waited for
		assert.equal("on the loop", fetch("/loop").body)
		finish()
	end)

	it("takes GET and HEAD only, of pages that it has", function()
		begin()
		assert.equal(200, fetch("/loop", "HEAD").status)
		assert.equal(0, fetch("/big", "HEAD").length)
		assert.equal(404, fetch("/other").status)
		assert.equal(404, fetch("/loop/").status)
		for _, method in ipairs { "POST", "PUT", "DELETE", "PATCH", "OPTIONS" } do
			assert.equal(405, fetch("/loop", method, { body = method ~= "DELETE" and ("x"):rep(100000) or nil }).status)
		end
		finish()
	end)

	it("sends a large page", function()
		begin()
		assert.equal(1000000, fetch("/big").length)
		finish()
	end)

	it("refuses a head that is too large, and lives on", function()
		begin()
		local done = fetch("/loop", "GET", { header = "X-Large: " .. ("x"):rep(100000) })
		assert.not_equal(200, done.status)
		assert.equal(200, fetch("/loop").status)
		finish()
	end)

	it("ends at once with connections open and requests waiting", function()
		begin()
		start "/block?seconds=1"
		child:wait_for("blocking", SECONDS)
		for _ = 1, 5 do
			start "/loop"
		end
		child:kill "TERM"
		child:wait_for("ended within 0.9 s", SECONDS)
		assert.equal(0, (child:wait(SECONDS)), child:stderr())
		driver:quit()
	end)

	it("listens on all addresses and on names", function()
		for _, address in ipairs { ":0", "0.0.0.0:0", "localhost:0" } do
			begin(address)
			assert.equal(200, fetch("/loop").status)
			finish()
		end
	end)

	it("listens on IPv6, and on all addresses of both kinds", function()
		local addresses = io.open "/proc/net/if_inet6"
		if not addresses or addresses:read "*l" == nil then
			pending "no IPv6 here"
			return
		end
		for _, address in ipairs { ":0", "[::1]:0" } do
			begin(address)
			url = url:gsub("127.0.0.1", "[::1]")
			assert.equal(200, fetch("/loop").status)
			finish()
		end
	end)

	it("says what is in its way, and what to do", function()
		begin("127.0.0.1:0", "in-use")
		local port = url:match "%d+$"
		assert.matches(("second: --listen 127.0.0.1:%s: address already in use; choose another with --listen ADDR:PORT or off")
			:format(port), child:stdout(), 1, true)
		finish()
	end)

	for _, address in ipairs { "", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "::1:80", "[::1", "[::1]8",
		"[]", "127.0.0.1:-1" } do
		it(("refuses %q as an address"):format(address), function()
			local failed = process.start { process.driver "server_driver", address }
			assert.equal(1, (failed:wait(SECONDS)))
			assert.matches("--listen " .. address .. ": not ADDR:PORT", failed:stderr(), 1, true)
		end)
	end

	it("refuses an address that this machine has not", function()
		local failed = process.start { process.driver "server_driver", "192.0.2.1:0" }
		assert.equal(1, (failed:wait(SECONDS)))
		assert.matches("not an address of this machine", failed:stderr())
	end)
end)
