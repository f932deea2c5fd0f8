-- An informer's initial state as one stream: what it takes of it, when it lists instead, and what it makes of silence.
local cache = require "support.cache"
local process = require "support.process"
local script = require "support.script"

local object = script.object
local FIRST = { resourceVersion = "0", limit = "500" }

describe("an informer's first stream", function()
	local server, driver

	before_each(function()
		server = script.start()
		server.streams = true
		driver = cache.start(cache.config(server.url))
	end)

	after_each(function()
		driver:finish()
	end)

	local function follow(spec)
		spec = spec or {}
		spec.apiVersion, spec.kind = "v1", "ConfigMap"
		driver:follow(spec)
		server:discover()
	end

	-- Waits until the informer's report holds that.
	local function await(field, value)
		local deadline = process.now() + 20
		repeat
			local report = driver:ask("report", { id = "i" })
			assert(process.now() < deadline, ("%s is %s"):format(field, tostring(report[field])))
		until report[field] == value
	end

	-- Answered, with these objects (name and version) sent and seen.
	local function begin(version, ...)
		local stream = server:watch_list(version)
		stream:open()
		local names = { ... }
		for i, name in ipairs(names) do
			stream:event("ADDED", name, i + 4)
		end
		await("state", "receiving the initial state")
		return stream
	end

	local function told()
		local events = {}
		for i, event in ipairs(driver:rest "h") do
			events[i] = ("%s %s %s"):format(event.event, event.key or "", event.version or "")
		end
		return events
	end

	local function wait_of()
		local change = driver:event("change", "i", function(event)
			return event.wait ~= nil
		end)
		driver:advance(change.wait)
		return change
	end

	-- Time passes in steps, as it would: what comes meanwhile is taken in between.
	local function pass(seconds)
		for _ = 1, seconds / 5 do
			driver:advance(5)
		end
	end

	it("is told once its end has come, in the order received, and goes on as the watch", function()
		follow()
		local stream = begin(nil, "b", "a")
		assert.same({}, told())
		assert.is_nil(driver:ask("report", { id = "i" }).synced)
		stream:initial_end "10"
		driver:event("synced", "h")
		assert.same({ "add shop/b 5", "add shop/a 6" }, told())
		stream:event("MODIFIED", "a", 12)
		assert.equal("12", driver:event("update", "h").version)
		stream:finish()
		assert.is_nil(server:watch("12").parameters.sendInitialEvents)
		local report = driver:ask("report", { id = "i" })
		assert.same({ 1, 2 }, { report.lists, report.watches })
	end)

	it("may be empty", function()
		follow()
		begin():initial_end "3"
		driver:change("i", "streaming")
		assert.is_true(driver:ask("report", { id = "i" }).synced)
	end)

	it("holds what changed and left meanwhile as it is at the end", function()
		follow()
		local stream = begin(nil, "a", "b", "c")
		stream:event("MODIFIED", "b", 8)
		stream:event("ADDED", "b", 7)
		stream:event("DELETED", "a", 9)
		stream:event("ADDED", "d", 10)
		stream:event("DELETED", "d", 11)
		stream:event("DELETED", "c", 12)
		stream:event("ADDED", "c", 13, { uid = "another" })
		stream:event("DELETED", "nobody", 14)
		stream:initial_end "14"
		driver:event("synced", "h")
		assert.same({ "add shop/b 8", "add shop/c 13" }, told())
		assert.same({ ["shop/b"] = "8", ["shop/c"] = "13" }, (driver:store "i"))
	end)

	it("comes again from the last version when that expired, and tells what is gone", function()
		follow()
		local stream = begin(nil, "a", "b")
		stream:initial_end "10"
		driver:event("synced", "h")
		stream:event("MODIFIED", "a", 12)
		stream:error(410, "Expired", "too old resource version")
		wait_of()
		stream = begin("12", "b")
		stream:initial_end "20"
		driver:event("delete", "h")
		assert.same({ ["shop/b"] = "6" }, (driver:store "i")) -- which is not taken back
		assert.same({ expired = 1 }, driver:ask("report", { id = "i" }).relists)
	end)

	it("comes again at once at no version when that one is not to be had", function()
		follow()
		local stream = begin(nil, "a")
		stream:initial_end "10"
		driver:event("synced", "h")
		stream:finish()
		server:watch("10"):status(500, "InternalError", "no")
		wait_of()
		server:watch_list("10"):status(410, "Expired", "no")
		begin(nil, "a"):initial_end "4"
		await("version", "4")
	end)

	-- Refused with that status, listed, watched; and then all is to be had again from 10.
	local function list_instead(code)
		follow()
		server:watch_list():status(code, "No", "no")
		server:list(FIRST):items({ object("a", 5) }, { version = "10" })
		local stream = server:watch "10"
		stream:open()
		driver:event("synced", "h")
		stream:error(500, "InternalError", "no")
		wait_of()
	end

	for _, code in ipairs { 400, 405, 422, 501 } do
		it(("that is refused with %d is a list, then and later"):format(code), function()
			list_instead(code)
			server:list { resourceVersion = "10" }
		end)
	end

	for _, code in ipairs { 403, 500 } do
		it(("that fails with %d is a list, and asked for again later"):format(code), function()
			list_instead(code)
			server:watch_list "10"
		end)
	end

	it("is asked for again once the server is another version", function()
		follow()
		server:watch_list():status(422, "Invalid", "no such parameter")
		server:list(FIRST):items({ object("a", 5) }, { version = "10" })
		local stream = server:watch "10"
		stream:open()
		driver:event("synced", "h")
		server.version = "v1.36.3"
		driver:advance(61)
		stream:error(500, "InternalError", "no")
		wait_of()
		stream = server:list { resourceVersion = "10" }
		driver.child:wait_for("the server is v1.36.3 now", 20)
		stream:status(500, "InternalError", "no")
		wait_of()
		server:watch_list "10"
	end)

	it("with an error inside is a list at once", function()
		follow()
		begin(nil, "gone"):error(500, "InternalError", "no")
		server:list(FIRST):items({ object("a", 5) }, { version = "10" })
		server:watch("10"):open()
		driver:event("synced", "h")
		assert.same({ "add shop/a 5" }, told())
	end)

	it("from a server that ignores the parameter is a list, for good", function()
		follow()
		begin(nil, "a"):bookmark "9"
		server:list(FIRST):items({ object("a", 5) }, { version = "10" })
		server:watch("10"):status(500, "InternalError", "no")
		wait_of()
		server:list { resourceVersion = "10" }
	end)

	it("that breaks off is asked for again, and listed the third time", function()
		follow()
		begin(nil, "a"):cut()
		wait_of()
		begin(nil, "a"):finish()
		wait_of()
		begin(nil, "a"):raw_bytes "nonsense"
		server:list(FIRST):items({ object("a", 5) }, { version = "10" })
		server:watch("10"):open()
		driver:event("synced", "h")
		assert.same({ "add shop/a 5" }, told())
	end)

	it("that brings another kind deletes nothing", function()
		follow()
		local stream = begin(nil, "a")
		stream:initial_end "10"
		driver:event("synced", "h")
		stream:error(410, "Expired", "no")
		wait_of()
		stream = begin "10"
		stream:event("ADDED", "a", 5, { kind = "Secret" })
		stream:initial_end "20"
		server:list({ resourceVersion = "10" }):items({ object("a", 5) }, { version = "20" })
		server:watch "20"
		assert.same({ "add shop/a 5" }, told())
	end)

	it("is not asked for where pages are wanted", function()
		follow { page_size = 2 }
		server:list { resourceVersion = "0", limit = "2" }
	end)

	describe("that falls silent", function()
		it("is a list after a minute without an object, and that is remembered", function()
			follow()
			local stream = begin(nil, "a")
			pass(40)
			stream:event("ADDED", "b", 6)
			await("objects", 2)
			pass(40)
			assert.equal("receiving the initial state", driver:ask("report", { id = "i" }).state)
			pass(25)
			server:list(FIRST):items({ object("a", 5) }, { version = "10" })
			stream = server:watch "10"
			stream:open()
			driver:event("synced", "h")
			stream:error(500, "InternalError", "no")
			wait_of()
			server:list { resourceVersion = "10" }
		end)

		it("before any answer is asked for again", function()
			follow()
			server:watch_list()
			pass(60)
			assert.matches("nothing came from http://127.0.0.1:%d+ for 6%d s", wait_of().message)
			begin(nil, "a"):initial_end "10"
			driver:event("synced", "h")
		end)
	end)

	describe("then a watch that falls silent", function()
		local function watching(bookmarks)
			follow()
			local stream = begin(nil, "a")
			stream:initial_end "10"
			driver:event("synced", "h")
			for i = 1, bookmarks do
				stream:bookmark(tostring(10 + i))
				await("bookmarks", i)
			end
			return stream
		end

		it("is given up after 90 s where bookmarks have come, and goes on from the last", function()
			local stream = watching(2)
			pass(80)
			stream:event("MODIFIED", "a", 15)
			driver:event("update", "h")
			pass(85)
			assert.equal(1, driver:ask("report", { id = "i" }).watches)
			pass(10)
			server:watch("15"):open()
			driver:change("i", "streaming")
			assert.same({ silent = 1 }, driver:ask("report", { id = "i" }).restarts)
		end)

		it("is left alone where too few have come, until the end that was asked for is overdue", function()
			local stream = watching(1)
			pass(300)
			assert.equal(1, driver:ask("report", { id = "i" }).watches)
			pass(310)
			server:watch "11"
			stream:cut()
		end)

		it("before any answer is asked for again, after a wait", function()
			watching(0):finish()
			server:watch "10"
			pass(60)
			wait_of()
			server:watch "10"
		end)
	end)
end)

describe("a list that falls silent", function()
	local server, driver

	before_each(function()
		server = script.start()
		driver = cache.start(cache.config(server.url))
		driver:follow { apiVersion = "v1", kind = "ConfigMap" }
		server:discover()
	end)

	after_each(function()
		driver:finish()
	end)

	local function give_up()
		for _ = 1, 19 do
			driver:advance(5)
		end
		local change = driver:event("change", "i", function(event)
			return event.wait ~= nil
		end)
		assert.matches("nothing came from http://127.0.0.1:%d+ for 9%d s", change.message)
		driver:advance(change.wait)
		server:list(FIRST):items({ object("a", 5) }, { version = "10" })
		server:watch "10"
		driver:event("synced", "h")
	end

	it("before its answer is asked for again", function()
		server:list(FIRST)
		give_up()
	end)

	it("inside its answer is asked for again", function()
		local list = server:list(FIRST)
		list.peer:write "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{"
		driver:change("i", "listing page 1")
		give_up()
	end)
end)
