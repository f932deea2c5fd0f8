local files = require "support.files"
local http_driver = require "support.http_driver"
local process = require "support.process"
local tcp = require "support.tcp"

local SECONDS = 10

describe("an HTTP request #slow", function()
	local server, driver

	before_each(function()
		server = tcp.listen()
		driver = http_driver.start()
	end)

	after_each(function()
		driver:quit()
		server:close()
	end)

	local function start(fields)
		fields = fields or {}
		fields.url = fields.url or server.url .. "/path?a=b"
		return driver:start(fields)
	end

	-- Starts a request and accepts its connection; the request's id, the peer and the head that came.
	local function exchange(fields)
		local id = start(fields)
		local peer = server:accept(SECONDS)
		return id, peer, peer:request()
	end

	describe("sends", function()
		it("what was asked for and nothing of its own but Host and Accept", function()
			local id, peer, head = exchange { header = { "X-One: 1", "Accept: application/json", "X-Empty:" } }
			assert.equal("GET /path?a=b HTTP/1.1\r\nHost: 127.0.0.1:" .. server.port
				.. "\r\nX-One: 1\r\nAccept: application/json\r\nX-Empty:\r\n\r\n", head)
			peer:answer "fine"
			local done = driver:done(id)
			assert.equal("none", done.failure)
			assert.equal("fine", done.body)
		end)

		it("the caller's User-Agent, Content-Type and Host", function()
			local id, peer, head = exchange {
				method = "POST", body = "{}",
				header = { "User-Agent: p/1", "Content-Type: application/json", "Host: there" },
			}
			assert.matches("\r\nUser%-Agent: p/1\r\n", head)
			assert.matches("\r\nContent%-Type: application/json\r\n", head)
			assert.matches("\r\nHost: there\r\n", head)
			assert.is_nil(head:match "Expect")
			assert.equal("{}", peer:read_until("}", SECONDS))
			peer:answer ""
			assert.equal("none", driver:done(id).failure)
		end)

		it("a large body without waiting for leave", function()
			local id, peer, head = exchange { method = "PUT", body_size = 2000000 }
			assert.matches("\r\nContent%-Length: 2000000\r\n", head)
			assert.is_nil(head:match "Expect")
			assert.is_nil(head:match "Content%-Type")
			local last = ("abcdefghijklmnopqrstuvwxyz"):rep(2):sub(2000000 % 26 + 1, 2000000 % 26 + 26)
			for _ = 1, 2000000 / 26 - 1 do
				peer:read_until(last, SECONDS)
			end
			peer:answer "ok"
			assert.equal("none", driver:done(id).failure)
		end)

		it("an empty body with its length where the method has one", function()
			for _, method in ipairs { "POST", "PUT", "PATCH" } do
				local id, peer, head = exchange { method = method }
				assert.matches("\r\nContent%-Length: 0\r\n", head)
				peer:answer("", "Connection: close\r\n")
				assert.equal("none", driver:done(id).failure)
			end
			local id, peer, head = exchange { method = "DELETE" }
			assert.matches("^DELETE ", head)
			assert.is_nil(head:match "Content%-Length")
			peer:answer ""
			assert.equal("none", driver:done(id).failure)
		end)

		it("the path as it stands", function()
			local id, peer, head = exchange { url = server.url .. "/a/../b//c%2Fd?x=../y" }
			assert.matches("^GET /a/%.%./b//c%%2Fd%?x=%.%./y HTTP", head)
			peer:answer ""
			driver:done(id)
		end)

		it("no request through a proxy of the environment, and one through the proxy that is named", function()
			driver:quit()
			local proxy = tcp.listen()
			driver = http_driver.start { env = { http_proxy = proxy.url, HTTPS_PROXY = proxy.url, ALL_PROXY = proxy.url } }
			local id, peer = exchange()
			peer:answer ""
			assert.equal("none", driver:done(id).failure)
			id = start { proxy = proxy.url }
			peer = proxy:accept(SECONDS)
			assert.matches("^GET http://127", peer:request())
			peer:answer ""
			assert.equal("none", driver:done(id).failure)
			id = start { proxy = proxy.url, url = "https://example.invalid/" }
			peer = proxy:accept(SECONDS)
			assert.matches("^CONNECT example.invalid:443 ", peer:request())
			peer:write "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
			local done = driver:done(id)
			assert.equal("connect", done.failure)
			assert.equal(0, done.status)
			assert.equal(0, done.sent)
			proxy:close()
		end)

		it("nothing for a malformed request", function()
			local cases = {
				{ url = "nonsense://x/" }, { url = "http://" }, { url = "" }, { url = "http://127.0.0.1:99999/" },
				{ url = "ftp://127.0.0.1/" }, { url = "file:///etc/passwd" }, { method = "GET /x" }, { method = "" },
				{ header = "no colon" }, { header = "a b: c" }, { header = ": x" }, { header = "A: b\rInjected: c" },
			}
			for _, fields in ipairs(cases) do
				local done = driver:done(start(fields))
				assert.equal("refused", done.failure)
				assert.equal(0, done.sent)
				assert.is_true(#done.message > 10)
			end
		end)
	end)

	describe("takes", function()
		it("status, content type, Retry-After and warnings of the head", function()
			local id, peer = exchange()
			peer:write("HTTP/1.1 429 Slow Down\r\ncontent-type: application/json;a=b\r\nRETRY-AFTER:  7 \r\n"
				.. "Warning: 299 - \"use \\\"v2\\\", please\"\r\nWarning: 299 host \"one\", 299 - \"two\" \"Sun, 06 Nov 1994 08:49:37 GMT\"\r\n"
				.. "Warning: bare words\r\nContent-Length: 4\r\n\r\nbusy")
			local head = driver:next("head", id)
			assert.equal(429, head.status)
			assert.equal(7, head.retry_after)
			assert.equal("application/json;a=b", head.content_type)
			for _, text in ipairs { 'use "v2", please', "one", "two", "bare words" } do
				assert.equal(text, driver:next("warning", id).text)
			end
			local done = driver:done(id)
			assert.equal("none", done.failure)
			assert.equal(429, done.status)
			assert.equal("busy", done.body)
			assert.is_false(driver:has("warning", id))
		end)

		it("Retry-After as a date, none as a negative number, and never more than an hour", function()
			local function retry_after(value)
				local id, peer = exchange()
				peer:answer("", (value and "Retry-After: " .. value .. "\r\n" or "") .. "Connection: close\r\n")
				driver:done(id)
				return driver:next("head", id).retry_after
			end
			local seconds = retry_after(os.date("!%a, %d %b %Y %H:%M:%S GMT", os.time() + 100))
			assert.is_true(seconds > 80 and seconds <= 100)
			assert.equal(0, retry_after "Sun, 06 Nov 1994 08:49:37 GMT")
			assert.equal(3600, retry_after "100000")
			assert.equal(3600, retry_after(os.date("!%a, %d %b %Y %H:%M:%S GMT", os.time() + 100000)))
			assert.equal(-1, retry_after "soon")
			assert.equal(-1, retry_after "-5")
			assert.equal(-1, retry_after(nil))
		end)

		it("informational answers as no answer", function()
			local id, peer = exchange()
			peer:write "HTTP/1.1 103 Early Hints\r\nWarning: 299 - \"early\"\r\n\r\n"
			peer:answer "real"
			local done = driver:done(id)
			assert.equal(200, done.status)
			assert.equal("real", done.body)
			assert.equal(200, driver:next("head", id).status)
			assert.is_false(driver:has("warning", id))
		end)

		it("a streamed answer as it comes", function()
			local id, peer = exchange { stream = true, chunks = true }
			peer:write "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
			driver:next("head", id)
			for _, text in ipairs { "one", "three", "x" } do
				peer:write(("%x\r\n%s\r\n"):format(#text, text))
				assert.equal(text, driver:next("chunk", id).text)
			end
			peer:write "0\r\n\r\n"
			local done = driver:done(id)
			assert.equal("none", done.failure)
			assert.equal(0, done.length)
			assert.equal(9, done.streamed)
		end)

		it("an error's body whole, even when streamed", function()
			local id, peer = exchange { stream = true, chunks = true }
			peer:write "HTTP/1.1 410 Gone\r\nContent-Length: 4\r\n\r\ngone"
			local done = driver:done(id)
			assert.equal("none", done.failure)
			assert.equal("gone", done.body)
			assert.equal(0, done.chunks)
		end)

		it("no redirect", function()
			local id, peer = exchange()
			peer:write "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
			assert.equal(302, driver:done(id).status)
		end)

		it("a head alone for HEAD", function()
			local id, peer, head = exchange { method = "HEAD" }
			assert.matches("^HEAD ", head)
			peer:write "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
			local done = driver:done(id)
			assert.equal("none", done.failure)
			assert.equal(0, done.length)
		end)

		it("1.5 MB in pieces, streamed", function()
			local id, peer = exchange { stream = true }
			peer:write "HTTP/1.1 200 OK\r\nContent-Length: 1500000\r\n\r\n"
			for _ = 1, 1500 do
				peer:write(("abcde"):rep(200))
			end
			local done = driver:done(id)
			assert.equal("none", done.failure)
			assert.equal(1500000, done.streamed)
		end)

		it("an answer over a unix socket", function()
			local path = files.folder() .. "/socket"
			local unix = tcp.listen_unix(path)
			local id = start { unix = path, url = "http://localhost/x" }
			local peer = unix:accept(SECONDS)
			assert.matches("^GET /x ", peer:request())
			peer:answer "hello"
			assert.equal("hello", driver:done(id).body)
			unix:close()
		end)
	end)

	describe("fails", function()
		it("with connect when nobody listens", function()
			server:close()
			local done = driver:done(start())
			server = tcp.listen()
			assert.equal("connect", done.failure)
			assert.equal(0, done.sent)
			assert.equal(0, done.status)
			assert.matches("connect", done.message)
		end)

		it("with connect when the name is not found", function()
			local done = driver:done(start { url = "http://nothing.invalid/" })
			assert.equal("connect", done.failure)
			assert.equal(0, done.sent)
			assert.matches("resolve", done.message)
		end)

		it("with connect when the peer does not speak TLS", function()
			local id = start { url = "https://127.0.0.1:" .. server.port }
			local peer = server:accept(SECONDS)
			peer:write "HTTP/1.1 400 Bad Request\r\n\r\n"
			local done = driver:done(id)
			assert.equal("connect", done.failure)
			assert.equal(0, done.sent)
		end)

		it("with timeout when the answer does not come, and says what was waited for", function()
			local id = exchange { timeout = 0.2 }
			local done = driver:done(id)
			assert.equal("timeout", done.failure)
			assert.equal(1, done.sent)
			assert.equal("no answer within 0.2 s", done.message)
			assert.is_true(done.took >= 0.2)
		end)

		it("with timeout in the middle of an answer, after telling what came", function()
			local id, peer = exchange { timeout = 0.5, stream = true, chunks = true }
			peer:write "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart"
			local done = driver:done(id)
			assert.equal("timeout", done.failure)
			assert.equal(200, done.status)
			assert.equal("part", driver:next("chunk", id).text)
		end)

		it("with timeout when TLS is not spoken within connect_timeout", function()
			local id = start { url = "https://127.0.0.1:" .. server.port, connect_timeout = 0.2 }
			server:accept(SECONDS)
			local done = driver:done(id)
			assert.equal("timeout", done.failure)
			assert.equal(0, done.sent)
			assert.equal("no connection within 0.2 s", done.message)
		end)

		it("with broken when the server closes in the middle of an answer", function()
			local heads = {
				"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\npart",
				"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n", "HTTP/1.1 200 OK\r\nConten", "HTTP/1.1 2",
			}
			for _, how in ipairs { "close", "reset" } do
				for _, text in ipairs(heads) do
					local id, peer = exchange { stream = how == "close", method = "POST" }
					peer:write(text)
					if text:match "part" then
						driver:next("head", id)
					end
					peer[how](peer)
					local done = driver:done(id)
					assert.equal("broken", done.failure, text)
					assert.equal(1, done.sent)
					assert.is_true(#done.message > 10)
				end
			end
		end)

		it("with broken when the server closes without an answer, or answers no HTTP", function()
			local id, peer = exchange()
			peer:close()
			local done = driver:done(id)
			assert.equal("broken", done.failure)
			assert.equal(1, done.sent)
			id, peer = exchange()
			peer:write "220 mail.example ESMTP\r\n"
			peer:close()
			assert.equal("broken", driver:done(id).failure)
		end)

		it("with too_large when a buffered answer, or an error's body, passes the limit", function()
			for _, fields in ipairs { { limit = 1000 }, { limit = 1000, stream = true, status = 500 } } do
				local status = fields.status or 200
				fields.status = nil
				local id, peer = exchange(fields)
				peer:write(("HTTP/1.1 %d X\r\nContent-Length: 1001\r\n\r\n%s"):format(status, ("x"):rep(1001)))
				local done = driver:done(id)
				assert.equal("too_large", done.failure)
				assert.equal(status, done.status)
				assert.matches("1000", done.message)
				peer:close()
			end
			local id, peer = exchange { limit = 1000 }
			peer:answer(("x"):rep(1000))
			assert.equal("none", driver:done(id).failure)
		end)
	end)

	describe("on a reused connection that dies", function()
		-- A connection that has answered once; both ends know it as reusable.
		local function used_connection()
			local id, peer = exchange()
			peer:answer "first"
			assert.equal("first", driver:done(id).body)
			return peer
		end

		for _, how in ipairs { "close", "reset" } do
			it("is sent again when it is a GET (" .. how .. ")", function()
				local peer = used_connection()
				local id = start()
				peer:request()
				peer[how](peer)
				peer = server:accept(SECONDS)
				peer:request()
				peer:answer "second"
				local done = driver:done(id)
				assert.equal("none", done.failure)
				assert.equal("second", done.body)
				assert.equal(1, done.sent)
			end)

			for _, method in ipairs { "POST", "DELETE" } do
				it("is not sent again when it is a " .. method .. " that may have been processed (" .. how .. ")", function()
					local peer = used_connection()
					local id = start { method = method, body = method == "POST" and "b" or nil }
					peer:request()
					peer[how](peer)
					local done = driver:done(id)
					assert.equal("broken", done.failure)
					assert.equal(1, done.sent)
					assert.is_false(server:has_connection())
				end)
			end
		end

		it("is sent on a new one when the old was closed before", function()
			for _, method in ipairs { "GET", "POST" } do
				local peer = used_connection()
				peer:close()
				local id, next_peer = exchange { method = method }
				next_peer:answer("again", "Connection: close\r\n")
				local done = driver:done(id)
				assert.equal("none", done.failure)
				assert.equal("again", done.body)
			end
		end)

		it("is not sent more than once again on a fresh one", function()
			local peer = used_connection()
			local id = start()
			peer:request()
			peer:close()
			peer = server:accept(SECONDS)
			peer:request()
			peer:close()
			local done = driver:done(id)
			assert.equal("broken", done.failure)
			assert.is_false(server:has_connection())
		end)
	end)

	describe("can be cancelled", function()
		local phases = {
			{ "at once", function()
				start { id = "x", cancel_on = "start" }
			end },
			{ "while its name is looked up", function()
				start { id = "x", url = "http://name.hang/" }
				driver:order("cancel", { id = "x" })
			end },
			{ "while it connects", function()
				start { id = "x", url = "https://127.0.0.1:" .. server.port }
				server:accept(SECONDS)
				driver:order("cancel", { id = "x" })
			end },
			{ "before an answer", function()
				exchange { id = "x" }
				driver:order("cancel", { id = "x" })
			end },
			{ "while it sends its body", function()
				exchange { id = "x", method = "POST", body_size = 30000000 }
				driver:order("cancel", { id = "x" })
			end },
			{ "in the middle of the head", function()
				local _, peer = exchange { id = "x" }
				peer:write "HTTP/1.1 200 OK\r\nWarn"
				driver:order("cancel", { id = "x" })
			end },
			{ "in on_head", function()
				local _, peer = exchange { id = "x", cancel_on = "head" }
				peer:write "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart"
			end },
			{ "in on_warning", function()
				local _, peer = exchange { id = "x", cancel_on = "warning" }
				peer:write "HTTP/1.1 200 OK\r\nWarning: 299 - \"w\"\r\nWarning: 299 - \"v\"\r\nContent-Length: 100\r\n\r\npart"
			end },
			{ "in on_chunk", function()
				local _, peer = exchange { id = "x", cancel_on = "chunk", stream = true }
				peer:write "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart"
			end },
			{ "between chunks", function()
				local _, peer = exchange { id = "x", stream = true, chunks = true }
				peer:write "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart"
				driver:next("chunk", "x")
				driver:order("cancel", { id = "x" })
			end },
		}
		for _, phase in ipairs(phases) do
			it(phase[1], function()
				phase[2]()
				assert.is_true(driver:next("cancelled", "x").took < 0.2)
				local id, peer = exchange()
				peer:answer "next"
				assert.equal("next", driver:done(id).body)
				assert.is_false(driver:has("done", "x"))
			end)
		end

		it("leaves nothing behind that holds up the end while a name is looked up", function()
			start { id = "x", url = "http://name.hang/" }
			start { id = "y", url = "https://other.hang/" }
			local before = process.now()
			assert.is_true(driver:quit().took < 0.5)
			assert.is_true(process.now() - before < 2)
			driver = http_driver.start()
		end)

		it("does not keep others of that name from their turn", function()
			start { id = "x", url = "http://name.hang/", connect_timeout = 5 }
			start { id = "y", url = "http://name.hang/", connect_timeout = 0.3 }
			assert.equal("timeout", driver:done("y").failure)
			driver:order("cancel", { id = "x" })
		end)
	end)

	it("knows for how long nothing has come", function()
		local id, peer = exchange { stream = true, chunks = true }
		peer:write "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart"
		driver:next("chunk", id)
		driver:order("block", { seconds = 1 })
		driver:order("silence", { id = id })
		local seconds = driver:next("silence", id).seconds
		assert.is_true(seconds >= 1)
		peer:write "more"
		driver:next("chunk", id)
		driver:order("silence", { id = id })
		assert.is_true(driver:next("silence", id).seconds < 1)
	end)

	it("makes each its own connection on a server that speaks HTTP/1.1 only, without waiting for each other", function()
		start { id = "a", count = 20 }
		local peers = {}
		for i = 1, 20 do
			peers[i] = server:accept(SECONDS)
			peers[i]:request()
		end
		for _, peer in ipairs(peers) do
			peer:answer "x"
		end
		for i = 1, 20 do
			assert.equal("none", driver:done("a" .. i).failure)
		end
	end)

	it("keeps to max_connections", function()
		driver:order("mux", { name = "small", max_connections = 2 })
		start { id = "a", count = 5, mux = "small" }
		local one, two = server:accept(SECONDS), server:accept(SECONDS)
		one:request()
		two:request()
		assert.is_false(server:has_connection())
		for _ = 1, 3 do
			one:answer "x"
			one:request()
		end
		one:answer "x"
		two:answer "x"
		for i = 1, 5 do
			assert.equal("none", driver:done("a" .. i).failure)
		end
	end)
end)
