-- What handlers see of an informer's life: the initial state, resyncs, and the end.
local cache = require "support.cache"
local process = require "support.process"
local script = require "support.script"

local object = script.object
local FIRST = { resourceVersion = "0", limit = "500" }

describe("a handler", function()
	local server, driver

	before_each(function()
		server = script.start()
		driver = cache.start(cache.config(server.url))
		driver:order("informer", { id = "i", apiVersion = "v1", kind = "ConfigMap" })
	end)

	after_each(function()
		driver:finish()
	end)

	local function listen(id, fields)
		fields = fields or {}
		fields.id, fields.informer = id, "i"
		driver:order("listen", fields)
	end

	local function start(items, version)
		driver:order "start"
		server:discover()
		server:list(FIRST):items(items, { version = version })
		local stream = server:watch(version)
		stream:open()
		driver:change("i", "streaming")
		return stream
	end

	local function stats(id)
		return driver:ask("stats", { id = id })
	end

	local function lines(id)
		local found = {}
		for i, event in ipairs(driver:rest(id)) do
			found[i] = event.event .. " " .. (event.key or "") .. (event.initial and " initial" or "") .. (event.resync and " resync" or "")
		end
		return found
	end

	it("opened before the list is given its items as initial, in order", function()
		listen("h", { open = 1 })
		start({ object("b", 5), object("a", 6) }, "10")
		driver:event("synced", "h")
		assert.same({ "add shop/b initial", "add shop/a initial" }, lines "h")
	end)

	it("opened late is given the store's content as initial, before anything newer", function()
		listen("witness", { open = 1, every = 1 })
		local stream = start({ object("b", 5), object("a", 6) }, "10")
		listen("h", { hold = 1 })
		stream:event("MODIFIED", "b", 11)
		driver:event("update", "witness")
		driver:order("open", { id = "h" })
		stream:event("MODIFIED", "a", 12)
		stream:event("ADDED", "c", 13)
		driver:event("add", "witness", function(event)
			return event.key == "shop/c"
		end)
		driver:order("drain", { id = "h" })
		driver:event("synced", "h")
		assert.same({ "add shop/b initial", "add shop/a initial", "add shop/c" }, lines "h")
	end)

	it("opened in the middle of a relist is given the store as it was, then what the relist changes", function()
		listen("witness", { open = 1, every = 1 })
		local stream = start({ object("a", 5), object("b", 6), object("c", 7) }, "10")
		driver:event("synced", "witness")
		listen("h", { hold = 1, every = 1 })
		stream:error(410, "Expired", "too old")
		local list = server:list { resourceVersion = "10" }
		driver:order("open", { id = "h" })
		list:items({ object("c", 7), object("b", 21), object("d", 22) }, { version = "30" })
		driver:event("add", "witness", function(event)
			return event.key == "shop/d"
		end)
		driver:order("drain", { id = "h" })
		driver:event("synced", "h")
		assert.same({ "add shop/a initial", "add shop/b initial", "add shop/c initial", "delete shop/a", "update shop/b", "add shop/d" }, lines "h")
	end)

	it("opened while a relist is carried out in turns is told each object once, and who reads sees all of it or nothing", function()
		local COUNT, HANDLERS = 800, 10
		local before, after = {}, {}
		for i = 1, COUNT do
			before[i], after[i] = object("n" .. i, i), object("n" .. i, 10000 + i)
		end
		listen("witness", { open = 1, quiet = 1 })
		local stream = start(before, "9000")
		driver:event("synced", "witness")
		driver:order("rush", { seconds = 0.006, looks = 2500 }) -- connecting may take 30 s
		stream:error(410, "Expired", "too old")
		server:list({ resourceVersion = "9000" }):items(after, { version = "20000" })
		local seen = {}
		for i = 1, HANDLERS do
			listen("h" .. i, { open = 1 })
			local store, keys = driver:store "i"
			assert.equal(COUNT, #keys)
			for j = 1, COUNT do
				local key = "shop/n" .. j
				assert.equal(store["shop/n1"] == "1" and tostring(j) or tostring(10000 + j), store[key])
			end
			seen[store["shop/n1"]] = true
		end
		local deadline = process.now() + 20
		while stats("witness").updates < COUNT do
			assert(process.now() < deadline)
		end
		for i = 1, HANDLERS do
			driver:event("synced", "h" .. i)
			local mirror = cache.mirror()
			for _, event in ipairs(driver:rest("h" .. i)) do
				mirror:apply(event)
			end
			for j = 1, COUNT do
				assert.equal(tostring(10000 + j), mirror.map["shop/n" .. j])
			end
		end
		assert.is_true(seen["10001"])
	end)

	it("is silent until it is opened", function()
		listen("h")
		listen("witness", { open = 1, every = 1 })
		local stream = start({ object("a", 5) }, "10")
		stream:event("MODIFIED", "a", 11)
		driver:event("update", "witness")
		assert.same({}, lines "h")
		assert.is_nil(stats("h").synced)
	end)

	it("has synced when the last of the initial state was handled, and not before", function()
		listen("h", { open = 1, hold = 1 })
		start({ object("a", 5), object("b", 6) }, "10")
		assert.is_nil(stats("h").synced)
		driver:order("drain", { id = "h", count = 1 })
		assert.is_nil(stats("h").synced)
		driver:order("drain", { id = "h", count = 1 })
		assert.is_true(stats("h").synced)
	end)

	it("of an empty kind has synced once the list came", function()
		listen("h", { open = 1 })
		assert.is_nil(stats("h").synced)
		start({}, "10")
		assert.is_true(stats("h").synced)
	end)

	it("has synced when what it waited for was deleted before it was handled", function()
		listen("h", { open = 1, hold = 1 })
		listen("witness", { open = 1, every = 1 })
		local stream = start({ object("a", 5), object("b", 6) }, "10")
		stream:event("DELETED", "a", 11)
		stream:event("DELETED", "b", 12)
		stream:event("ADDED", "c", 13)
		driver:event("add", "witness", function(event)
			return event.key == "shop/c"
		end)
		assert.is_true(stats("h").synced)
		driver:order("drain", { id = "h" })
		driver:event("synced", "h")
		assert.same({ "add shop/c" }, lines "h")
	end)

	it("that asks for every event is given the initial add and its delete", function()
		listen("h", { open = 1, hold = 1, every = 1 })
		listen("witness", { open = 1, every = 1 })
		local stream = start({ object("a", 5) }, "10")
		stream:event("DELETED", "a", 11)
		driver:event("delete", "witness")
		assert.is_nil(stats("h").synced)
		driver:order("drain", { id = "h" })
		driver:event("synced", "h")
		assert.same({ "add shop/a initial", "delete shop/a" }, lines "h")
	end)

	it("is given a resync at its own period, without a request", function()
		listen("thirty", { open = 1, resync = 30 })
		listen("fifty", { open = 1, resync = 50 })
		listen("never", { open = 1 })
		start({ object("a", 5), object("b", 6) }, "10")
		local lists = driver:ask("report", { id = "i" }).lists
		for _, id in ipairs { "thirty", "fifty", "never" } do
			driver:event("synced", id)
			driver:rest(id)
		end
		driver:advance(31)
		local event = driver:event("update", "thirty")
		assert.same({ "5", "5", true }, { event.version, event.old, event.resync })
		driver:event("update", "thirty")
		assert.same({}, lines "fifty")
		driver:advance(20)
		driver:event("update", "fifty")
		driver:event("update", "fifty")
		assert.same({}, lines "thirty")
		driver:advance(12)
		driver:event("update", "thirty")
		driver:event("update", "thirty")
		assert.same({}, lines "never")
		assert.equal(lists, driver:ask("report", { id = "i" }).lists)
	end)

	it("that is slower than its resync is not given ever more", function()
		listen("merged", { open = 1, resync = 10, hold = 1 })
		listen("every", { open = 1, resync = 10, hold = 1, every = 1 })
		start({ object("a", 5), object("b", 6) }, "10")
		driver:order("drain", { id = "merged" })
		driver:order("drain", { id = "every" })
		driver:rest "merged"
		driver:rest "every"
		for _ = 1, 5 do
			driver:advance(11)
		end
		stats "merged" -- an order's answer comes after the timers before it
		assert.same({ 2, 2 }, { stats("merged").depth, stats("every").depth })
		driver:order("drain", { id = "every" })
		assert.same({ "update shop/a resync", "update shop/b resync" }, lines "every")
	end)

	it("that is removed hears no more, and others go on", function()
		listen("h", { open = 1 })
		listen("witness", { open = 1, every = 1 })
		local stream = start({ object("a", 5) }, "10")
		driver:event("synced", "h")
		driver:rest "h"
		driver:order("forget", { id = "h" })
		stream:event("MODIFIED", "a", 11)
		driver:event("update", "witness")
		assert.same({}, lines "h")
	end)

	it("says how much waits, and for how long", function()
		listen("h", { open = 1, hold = 1 })
		start({ object("a", 5), object("b", 6) }, "10")
		driver:advance(7)
		local now = stats "h"
		assert.equal(2, now.depth)
		assert(now.age >= 7 and now.age < 8)
		driver:order("drain", { id = "h" })
		assert.same({ 0, 0 }, { stats("h").depth, stats("h").age })
	end)

	it("may be freed inside its own callback, as may what it hangs on", function()
		listen("h", { open = 1, ["end"] = 1 })
		listen("witness", { open = 1, every = 1 })
		driver:order("barrier", { id = "g", informers = "i", patience = 10, ["end"] = 1 })
		driver:order("informer", { id = "doomed", apiVersion = "v1", kind = "ConfigMap", ["end"] = 1 })
		driver:order "start"
		server:discover()
		server:list(FIRST):items({ object("a", 5) }, { version = "10" })
		driver:event("synced", "witness")
		driver:event("gate_open", "g")
		driver:change("i", "stopped")
	end)

	it("may be freed while the program ends in the middle of a list", function()
		listen("h", { open = 1 })
		driver:order "start"
		server:discover()
		local list = server:list(FIRST)
		list.peer:write 'HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{"metadata":{"resourceVersion":"11"},"items":[{"metadata":{"name":"a"}},{"me'
		driver:change("i", "listing page 1")
	end)
end)
