local h2server = require "support.h2server"
local http_driver = require "support.http_driver"
local tcp = require "support.tcp"

describe("HTTP/2 #slow", function()
	local server, driver

	before_each(function()
		local why
		server, why = h2server.start()
		if not server then
			pending(why)
			return
		end
		driver = http_driver.start()
		driver:order("tls", { name = "t", ca = server.ca })
		driver:order("mux", { name = "aside" })
	end)

	after_each(function()
		driver:quit()
		server:close()
	end)

	local function start(path, fields)
		fields = fields or {}
		fields.url = server.url .. path
		fields.tls = fields.tls or "t"
		return driver:start(fields)
	end

	local function fetch(path, fields)
		return driver:done(start(path, fields))
	end

	it("is spoken, with the method, headers and body that were asked for", function()
		local done = fetch("/echo?a=b%20c", { method = "PATCH", body = "{}", header = { "X-One: 1", "X-Empty:" } })
		assert.equal("none", done.failure)
		assert.equal(200, done.status)
		local echo = require("cjson").decode(done.body)
		assert.equal("PATCH", echo.method)
		assert.equal("/echo?a=b%20c", echo.path)
		assert.equal("{}", echo.body)
		assert.same({ accept = "*/*", ["content-length"] = "2", ["x-one"] = "1", ["x-empty"] = "" }, echo.headers)
	end)

	it("holds 100 watches and 100 calls at once on few connections", function()
		local watches, calls = {}, {}
		driver:order("mux", { name = "watches" })
		for i = 1, 100 do
			watches[i] = start("/watch?interval_ms=50&lines=20", { stream = true, mux = "watches" })
		end
		for i = 1, 100 do
			calls[i] = start("/ok")
		end
		for _, id in ipairs(calls) do
			assert.equal("none", driver:done(id).failure)
		end
		for _, id in ipairs(watches) do
			local done = driver:done(id)
			assert.equal("none", done.failure)
			assert.equal(9 * #'{"line":1}\n' + 11 * #'{"line":10}\n', done.streamed)
		end
		local stats = server:stats(driver)
		assert.equal(0, stats.over_limit)
		assert.is_true(stats.connections <= 5, "connections: " .. stats.connections)
	end)

	it("opens a second connection for what one can't carry", function()
		local ids = {}
		for i = 1, 150 do
			ids[i] = start("/watch?interval_ms=100&lines=5", { stream = true })
		end
		for _, id in ipairs(ids) do
			assert.equal("none", driver:done(id).failure)
		end
		assert.is_true(server:stats(driver).connections <= 3)
	end)

	it("streams 100 watches at the rate in which they come while calls are made", function()
		for i = 1, 100 do
			start("/watch?interval_ms=20", { stream = true, id = "w" .. i, cancel_on = i % 2 == 0 and "chunk" or nil })
		end
		for _ = 1, 20 do
			assert.equal(200, fetch("/ok").status)
		end
		assert.equal(50, driver:running "m")
	end)

	for _, method in ipairs { "GET", "POST", "PUT", "DELETE" } do
		local body = (method == "POST" or method == "PUT") and ("x"):rep(1000) or nil

		it("sends a " .. method .. " again whose stream was refused", function()
			assert.equal(200, fetch("/ok").status) -- so that the connection is a reused one
			local done = fetch("/refused?times=3&id=a", { method = method, body = body })
			assert.equal("none", done.failure)
			assert.equal(200, done.status)
			assert.equal(4, server:stats(driver).requests["/refused"])
		end)

		it("sends a " .. method .. " again that a GOAWAY gave up", function()
			local others = {}
			for i = 1, 5 do
				others[i] = start("/slow?bytes=20&bytes_per_second=40")
			end
			driver:next("head", others[5])
			local done = fetch("/goaway-lost?times=1&id=a", { method = method, body = body })
			assert.equal("none", done.failure)
			assert.equal(200, done.status)
			for _, id in ipairs(others) do
				local other = driver:done(id)
				assert.equal("none", other.failure)
				assert.equal(20, other.length)
			end
			assert.equal(2, server:stats(driver).requests["/goaway-lost"])
		end)

		it("sends a " .. method .. " again that a GOAWAY gave up when it was alone on its connection", function()
			local done = fetch("/goaway-lost?times=1&id=a", { method = method, body = body })
			assert.equal("none", done.failure)
			assert.equal(200, done.status)
		end)
	end

	it("shares one new connection among all that begin while the present one goes away", function()
		local watch = start("/watch?interval_ms=50", { stream = true })
		driver:next("head", watch)
		assert.equal(200, fetch("/goaway").status)
		start("/watch?interval_ms=50", { stream = true, id = "w", count = 50 })
		for i = 1, 50 do
			driver:next("head", "w" .. i)
		end
		assert.equal(2, server:stats(driver).connections)
	end)

	it("shares one new connection among all that a GOAWAY gave up", function()
		local watch = start("/watch?interval_ms=50", { stream = true })
		driver:next("head", watch)
		start("/hang?times=50&id=1", { id = "h", count = 50, method = "POST", body = "b" })
		server:wait_until(driver, "50 requests have come", function(stats)
			return stats.requests["/hang"] == 50
		end)
		assert.equal(200, fetch("/goaway-lost?times=1&lost=51&id=x").status)
		for i = 1, 50 do
			local done = driver:done("h" .. i)
			assert.equal("none", done.failure)
			assert.equal(200, done.status)
		end
		assert.is_true(server:stats(driver).connections <= 3)
	end)

	it("takes a new connection after a GOAWAY and loses nothing of what runs", function()
		local watch = start("/watch?interval_ms=20&lines=30", { stream = true })
		driver:next("head", watch)
		for i = 1, 5 do
			assert.equal(200, fetch("/goaway?id=" .. i).status)
			assert.equal(200, fetch("/ok", { method = "POST", body = "b" }).status)
		end
		assert.equal("none", driver:done(watch).failure)
		assert.equal(6, server:stats(driver).connections)
	end)

	it("gives up after five repetitions, and knows that nothing was done", function()
		local done = fetch("/refused?id=a", { method = "POST", body = "b" })
		assert.equal("broken", done.failure)
		assert.equal(0, done.sent)
		assert.matches("refused", done.message)
		assert.equal(6, server:stats(driver).requests["/refused"])
	end)

	it("says of a write that was cut off that it may have happened, and does not send it again", function()
		assert.equal(200, fetch("/ok").status)
		local done = fetch("/close", { method = "POST", body = "b" })
		assert.equal("broken", done.failure)
		assert.equal(1, done.sent)
		assert.equal(1, server:stats(driver).requests["/close"])
	end)

	it("sends a GET again that was cut off on a reused connection", function()
		assert.equal(200, fetch("/ok").status)
		assert.equal(200, fetch("/close?times=1&id=a").status)
		assert.equal(2, server:stats(driver).requests["/close"])
	end)

	it("is broken for each request on a connection that breaks in the middle of their answers", function()
		local ids = {}
		for i = 1, 30 do
			ids[i] = start("/watch?interval_ms=20", { stream = i % 2 == 0 })
			driver:next("head", ids[i])
		end
		start("/close", { id = "closer", method = "POST" })
		for _, id in ipairs(ids) do
			local done = driver:done(id)
			assert.equal("broken", done.failure)
			assert.equal(200, done.status)
		end
		assert.equal("broken", driver:done("closer").failure)
	end)

	it("is broken for each request when the server is killed, also after its GOAWAY", function()
		for _, goaway in ipairs { false, true } do
			local ids = {}
			for i = 1, 30 do
				ids[i] = start("/watch?interval_ms=20", { stream = i % 2 == 0 })
			end
			for _, id in ipairs(ids) do
				driver:next("head", id)
			end
			if goaway then
				assert.equal(200, fetch("/goaway").status)
			end
			server.child:kill "KILL"
			for _, id in ipairs(ids) do
				assert.equal("broken", driver:done(id).failure)
			end
			server = h2server.start { dir = server.dir }
		end
	end)

	it("keeps to the server's own limit of streams", function()
		server:close()
		server = h2server.start { dir = server.dir, "-max-streams", "10" }
		start("/watch?interval_ms=50", { id = "w", count = 60, stream = true })
		for i = 1, 60 do
			driver:next("head", "w" .. i)
		end
		assert.equal(6, server:stats(driver, nil, "aside").open_connections - 1)
	end)

	it("is broken when a stream is reset in the middle of its answer, and only that one", function()
		local healthy = start("/watch?interval_ms=20&lines=10", { stream = true })
		local done = fetch("/big?bytes=100000&end=reset", { stream = true })
		assert.equal("broken", done.failure)
		assert.matches("INTERNAL_ERROR", done.message)
		assert.equal("none", driver:done(healthy).failure)
		assert.equal(1, server:stats(driver).connections)
	end)

	it("gives up a stream that is cancelled, and goes on with the connection", function()
		local hanging = start "/hang"
		assert.equal(200, fetch("/ok").status)
		driver:order("cancel", { id = hanging })
		assert.equal(200, fetch("/ok").status)
		local stats = server:stats(driver)
		assert.equal(1, stats.cancelled)
		assert.equal(1, stats.connections)
	end)

	it("tells the server at once that a stream is given up, beside others and alone", function()
		local first = start("/watch?interval_ms=60000", { stream = true })
		local second = start("/watch?interval_ms=60000", { stream = true })
		driver:next("head", first)
		driver:next("head", second)
		driver:order("cancel", { id = first })
		server:wait_until(driver, "one stream is given up", function(stats)
			return stats.cancelled == 1
		end)
		driver:order("cancel", { id = second })
		server:wait_until(driver, "the connection is closed", function(stats)
			return stats.open_connections == 1
		end)
	end)

	it("moves to new connections when the mux is retired, and lets running transfers end", function()
		local watch = start("/watch?interval_ms=20&lines=20", { stream = true })
		driver:next("head", watch)
		driver:order("retire")
		assert.equal(200, fetch("/ok").status)
		assert.equal("none", driver:done(watch).failure)
		assert.equal(2, server:stats(driver).connections)
	end)

	it("measures the silence of a connection that has gone mute, whose deadline fires", function()
		local muted = start("/mute", { timeout = 0.5 })
		local done = driver:done(muted)
		assert.equal("timeout", done.failure)
		assert.equal(1, done.sent)
		assert.matches("0.5 s", done.message)
		driver:order("retire")
		assert.equal(200, fetch("/ok").status)
	end)

	it("takes 1.5 MB, streamed or whole", function()
		local whole = fetch "/big?bytes=1500000"
		local streamed = fetch("/big?bytes=1500000", { stream = true })
		assert.equal(1500000, whole.length)
		assert.equal(1500000, streamed.streamed)
		assert.equal(0, streamed.length)
		assert.equal(whole.sum, streamed.sum)
		assert.is_true(streamed.chunks > 1)
	end)

	it("tells a large answer in slices, and all else on its connection goes on", function()
		local watch = start("/watch?interval_ms=20&lines=20", { stream = true })
		driver:next("head", watch)
		local ids = {}
		for i = 1, 6 do
			ids[i] = start("/big?bytes=20000000", { stream = true, id = "big" .. i, cancel_on = i % 2 == 0 and "chunk" or nil })
		end
		for i = 1, 6, 2 do
			local done = driver:done(ids[i])
			assert.same({ "none", 20000000 }, { done.failure, done.streamed })
			assert(done.largest <= 120 * 1024 and done.chunks >= 20000000 / (120 * 1024), done.largest .. " bytes at once")
		end
		assert.equal(200, fetch("/ok").status)
		assert.equal("none", driver:done(watch).failure)
		assert.equal(1, server:stats(driver).connections)
	end)

	it("takes a large body to the server", function()
		local done = fetch("/echo", { method = "POST", body_size = 1500000 })
		assert.equal("none", done.failure)
		assert.is_true(done.length > 1500000)
	end)

	it("leaves the others on the connection alone when one is cancelled in each phase", function()
		for _, phase in ipairs { "start", "head", "chunk" } do
			local ids = {}
			for i = 1, 10 do
				ids[i] = start("/watch?interval_ms=10&lines=10",
					{ stream = true, cancel_on = i % 2 == 0 and phase or nil, id = phase .. i })
			end
			for i = 1, 10, 2 do
				assert.equal("none", driver:done(ids[i]).failure)
			end
		end
	end)

	it("does not hold up requests that wait for a connection whose first request was cancelled", function()
		local silent = tcp.listen()
		local ids = {}
		for i = 1, 5 do
			ids[i] = driver:start { url = "https://127.0.0.1:" .. silent.port, tls = "t", connect_timeout = 5 }
		end
		silent:accept(5)
		driver:order("cancel", { id = ids[1] })
		silent:accept(5)
		for i = 2, 5 do
			driver:order("cancel", { id = ids[i] })
		end
		silent:close()
	end)
end)
