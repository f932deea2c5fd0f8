-- Kinds: one that is asked for in two ways, and one that comes, goes and is forbidden.
local cache = require "support.cache"
local script = require "support.script"

local object = script.object
local FIRST = { resourceVersion = "0", limit = "500" }

local server, driver

local function before()
	server = script.start()
	driver = cache.start(cache.config(server.url))
end

local function after()
	driver:finish()
end

local function ask(id, fields)
	fields.id, fields.apiVersion = id, "v1"
	driver:order("informer", fields)
end

local function silent(seconds)
	assert.has_error(function()
		server.server:accept(seconds or 0.2)
	end)
end

describe("a kind asked for by its name and by its resource", function()
	before_each(before)
	after_each(after)

	-- The adds that a handler was told, in the order of their keys.
	local function adds(id, count)
		local told = {}
		for i = 1, count do
			local event = driver:event("add", id)
			told[i] = event.key .. (event.initial and " initial" or "")
		end
		table.sort(told)
		return told
	end

	it("is watched once, and each handler of either is told everything once", function()
		ask("kind", { kind = "ConfigMap" })
		ask("plural", { resource = "configmaps" })
		for _, id in ipairs { "kind", "plural" } do
			driver:order("listen", { id = id .. "-early", informer = id, open = 1, every = 1 })
			driver:order("listen", { id = id .. "-late", informer = id, every = 1 })
		end
		driver:order "start"
		server:discover()
		server:list(FIRST):items({ object("a", 5), object("b", 6) }, { version = "10" })
		local stream = server:watch "10"
		stream:open()
		for _, id in ipairs { "kind", "plural" } do
			driver:wait_synced(id)
			driver:order("open", { id = id .. "-late" })
		end
		stream:event("ADDED", "c", 11)
		for _, id in ipairs { "kind-early", "plural-early", "kind-late", "plural-late" } do
			assert.same({ "shop/a initial", "shop/b initial", "shop/c" }, adds(id, 3))
			assert.is_true(driver:ask("stats", { id = id }).synced)
		end
		silent()
		for _, id in ipairs { "kind", "plural" } do
			assert.same({ "shop/a", "shop/b", "shop/c" }, (select(2, driver:store(id))))
		end
		stream:event("DELETED", "a", 12)
		assert.equal("shop/a", driver:event("delete", "plural-early").key)
		assert.equal("shop/a", driver:event("delete", "kind-early").key)
		for _, id in ipairs { "kind-early", "plural-early" } do
			local stats = driver:ask("stats", { id = id })
			assert.same({ 3, 0, 1 }, { stats.adds, stats.updates, stats.deletes })
		end
	end)

	it("brings its handlers and indexes to the watch that runs already", function()
		ask("kind", { kind = "ConfigMap" })
		driver:order "start"
		server:discover()
		server:list(FIRST):items({ object("a", 5, { data = { color = "red" } }), object("b", 6) }, { version = "10" })
		server:watch("10"):open()
		driver:wait_synced "kind"
		ask("plural", { resource = "configmaps", page_size = 7 })
		driver:order("index", { id = "plural", name = "color", path = "data.color" })
		driver:order("listen", { id = "h", informer = "plural", open = 1, every = 1 })
		driver:order "start"
		assert.same({ "shop/a initial", "shop/b initial" }, adds("h", 2))
		assert.is_true(driver:ask("stats", { id = "h" }).synced)
		assert.same({ { "shop/a", "5" } }, driver:ask("find", { id = "plural", name = "color", value = "red" }).objects)
		driver.child:wait_for("the same as v1/ConfigMap: one watch serves both, with that one's page_size", 5)
		silent()
	end)

	it("stays two where selectors, namespaces or projections differ", function()
		ask("all", { kind = "ConfigMap" })
		ask("labels", { resource = "configmaps", labels = "app=web" })
		ask("one", { resource = "configmaps", namespaces = "shop" })
		ask("metadata", { resource = "configmaps", metadata = 1 })
		driver:order "start"
		server:discover()
		local asked = {}
		for i = 1, 4 do
			local request = server:request()
			asked[i] = request.path .. " " .. (request.parameters.labelSelector or "")
		end
		table.sort(asked)
		assert.same({ "/api/v1/configmaps ", "/api/v1/configmaps ", "/api/v1/configmaps app=web", "/api/v1/namespaces/shop/configmaps " }, asked)
	end)

	it("is watched on when the first who asked has gone", function()
		driver:order("informer", { id = "kind", apiVersion = "v1", kind = "ConfigMap" })
		driver:order("informer", { id = "plural", apiVersion = "v1", resource = "configmaps", second = 1 })
		for _, id in ipairs { "kind", "plural" } do
			driver:order("listen", { id = id .. "-h", informer = id, open = 1, every = 1 })
		end
		driver:order "start"
		driver:order("start", { second = 1 })
		server:discover()
		server:list(FIRST):items({}, { version = "10" })
		local stream = server:watch "10"
		stream:open()
		driver:change("kind", "streaming")
		driver:order "shutdown"
		assert.equal("stopped", driver:ask("report", { id = "kind" }).state)
		stream:event("ADDED", "a", 11)
		assert.equal("shop/a", driver:event("add", "plural-h").key)
		assert.same({}, driver:rest "kind-h")
		stream:error(500, "InternalError", "no")
		local change = driver:event("change", "plural", function(event)
			return event.wait ~= nil
		end)
		driver:advance(change.wait + 1)
		server:list({ resourceVersion = "11" }):status(404, "NotFound", "no")
		change = driver:change("plural", "no such kind")
		driver:advance(change.wait + 1)
		server:discover()
		server:list(FIRST):items({ object("a", 11) }, { version = "20" })
		stream = server:watch "20"
		stream:open()
		driver:order("shutdown", { second = 1 })
		assert(stream.peer:wait_closed(5))
	end)

	it("that is absent is looked up by all who wait, and watched once when it has come", function()
		ask("kind", { kind = "ConfigMap" })
		ask("plural", { resource = "configmaps" })
		driver:order "start"
		server:discover(true)
		for _, id in ipairs { "kind", "plural" } do
			driver:change(id, "no such kind")
		end
		driver:advance(3)
		server:discover()
		server:list(FIRST):items({ object("a", 5) }, { version = "10" })
		server:watch "10"
		for _, id in ipairs { "kind", "plural" } do
			driver:wait_synced(id)
		end
		silent()
	end)
end)

describe("an optional informer", function()
	before_each(before)
	after_each(after)

	local function barrier(fields)
		fields.id, fields.patience = fields.id or "g", fields.patience or 60
		driver:order("barrier", fields)
	end

	local function table_row(id, label)
		return driver:ask("table", { id = id or "g" }).text:match("\n(" .. (label or "v1/ConfigMap") .. "[^\n]*)")
	end

	it("of an absent kind is parked, and syncs by itself when the kind has come", function()
		ask("i", { kind = "ConfigMap", optional = 1 })
		driver:order("listen", { id = "h", informer = "i", open = 1, every = 1 })
		driver:order "start"
		barrier { informers = "i" }
		server:discover(true)
		driver:event("gate_open", "g")
		local change = driver:change("i", "parked: no such kind, next try in ")
		assert.is_nil(change.synced)
		assert.matches("^v1/ConfigMap%s+no%s+parked: no such kind", table_row())
		driver.child:wait_for("parked: it goes on by itself when the kind is there", 5)
		driver:advance(change.wait + 0.1)
		server:discover()
		server:list(FIRST):items({ object("a", 5) }, { version = "10" })
		server:watch "10"
		driver:wait_synced "i"
		assert.is_true(driver:event("add", "h").initial)
	end)

	it("of a forbidden kind is parked, and syncs by itself when it is allowed", function()
		ask("i", { kind = "ConfigMap", optional = 1 })
		driver:order "start"
		barrier { informers = "i" }
		server:discover()
		server:list(FIRST):status(403, "Forbidden", "no such luck")
		driver:event("gate_open", "g")
		local change = driver:change("i", "parked: forbidden, next try in ")
		assert.matches("no such luck %(missing: list, watch on configmaps%)$", change.message)
		driver:advance(change.wait + 0.1)
		server:list(FIRST):items({}, { version = "10" })
		server:watch "10"
		driver:wait_synced "i"
	end)

	it("is waited for while all goes well with it", function()
		ask("i", { kind = "ConfigMap", optional = 1 })
		driver:order "start"
		barrier { informers = "i" }
		server:discover()
		local list = server:list(FIRST)
		assert.matches("^v1/ConfigMap: connecting", driver:ask("late", { id = "g" }).text)
		list:items({ object("a", 5) }, { version = "10" })
		driver:event("gate_open", "g")
		assert.is_true(driver:ask("report", { id = "i" }).synced)
		server:watch "10"
	end)

	it("is not waited for when nothing comes", function()
		ask("i", { kind = "ConfigMap", optional = 1 })
		driver:order "start"
		barrier { informers = "i" }
		server:discover()
		server:list(FIRST)
		driver:advance(10.5)
		driver:event("gate_open", "g")
	end)

	it("is not waited for beyond the barrier's own patience", function()
		ask("i", { kind = "ConfigMap", optional = 1 })
		driver:order "start"
		barrier { informers = "i", patience = 3 }
		server:discover()
		server:list(FIRST)
		driver:advance(3.5)
		driver:event("gate_open", "g")
	end)

	it("shares the watch of one who needs it, whose barrier waits", function()
		ask("i", { kind = "ConfigMap", optional = 1 })
		ask("same", { kind = "ConfigMap", second = 1 })
		driver:order "start"
		barrier { id = "optional", informers = "i" }
		barrier { id = "needed", informers = "i", second = 1 }
		server:discover(true)
		driver:event("gate_open", "optional")
		local change = driver:change("i", "no such kind, next try in ")
		assert.matches("^v1/ConfigMap: no such kind", driver:ask("late", { id = "needed" }).text)
		driver:advance(change.wait + 0.1)
		server:discover()
		server:list(FIRST):items({}, { version = "10" })
		server:watch "10"
		driver:event("gate_open", "needed")
	end)
end)

describe("a kind that", function()
	before_each(before)
	after_each(after)

	local function settle()
		driver:follow({ apiVersion = "v1", kind = "ConfigMap" })
		server:discover()
		server:list(FIRST):items({ object("a", 5), object("b", 6) }, { version = "10" })
		local stream = server:watch "10"
		stream:open()
		driver:change("i", "streaming")
		return stream
	end

	local function wait(state)
		local change = driver:event("change", "i", function(event)
			return event.wait ~= nil and event.state:sub(1, #state) == state
		end)
		driver:advance(change.wait + 0.1)
		return change
	end

	-- Ends the watch, so that the next thing asked is a list.
	local function relist(stream, version)
		stream:error(500, "InternalError", "no")
		wait "backing off"
		return server:list { resourceVersion = version }
	end

	it("disappears is parked, and not asked for more than once in 30 s", function()
		relist(settle(), "10"):status(404, "NotFound", "gone")
		wait "no such kind"
		server:discover(true)
		for _, key in ipairs { "shop/a", "shop/b" } do
			local gone = driver:event("delete", "h")
			assert.same({ key, true }, { gone.key, gone.final_state_unknown })
		end
		local waits = {}
		for i = 1, 8 do
			waits[i] = wait("parked: no such kind").wait
			server:discover(true)
		end
		assert(waits[7] > 29 and waits[8] > 29, table.concat(waits, " "))
		assert(math.max(unpack(waits)) <= 30, table.concat(waits, " "))
		assert.is_true(driver:ask("report", { id = "i" }).synced)
		wait "parked: no such kind"
		server:discover()
		server:list(FIRST):items({ object("a", 50, { uid = "new" }) }, { version = "60" })
		server:watch "60"
		assert.is_nil(driver:event("add", "h", function(event)
			return event.uid == "new"
		end).initial)
	end)

	it("answers 404 while discovery has it keeps its objects", function()
		relist(settle(), "10"):status(404, "NotFound", "not now")
		wait "no such kind"
		server:discover()
		server:list(FIRST):items({ object("a", 5), object("b", 6) }, { version = "20" })
		server:watch "20"
		driver:change("i", "connecting the watch")
		local stats = driver:ask("stats", { id = "h" })
		assert.same({ 2, 0, 0 }, { stats.adds, stats.updates, stats.deletes })
	end)

	it("is forbidden after its sync keeps its objects and says that they are stale", function()
		local stream = settle()
		relist(stream, "10"):status(403, "Forbidden", "no more")
		local change = wait "stale: forbidden, next try in "
		assert.is_true(change.synced)
		assert.matches("no more %(missing: list, watch on configmaps%)$", change.message)
		driver.child:wait_for("the cache is stale", 5)
		assert.same({ "shop/a", "shop/b" }, (select(2, driver:store "i")))
		server:list({ resourceVersion = "10" }):items({ object("a", 5) }, { version = "30" })
		server:watch("30"):open()
		assert.equal("", driver:change("i", "streaming").message)
		assert.equal("shop/b", driver:event("delete", "h").key)
	end)
end)

describe("many absent kinds", function()
	before_each(before)
	after_each(after)

	local function none() -- of a group version that has no kind
		local request = server:request()
		assert.equal("/api/v1", request.path)
		request:json(200, { kind = "APIResourceList", groupVersion = "v1", resources = {} })
	end

	-- The shortest and the longest wait, once no look-up is under way.
	local function waits(count)
		local shortest, longest = math.huge, 0
		for i = 1, count do
			local report
			repeat
				report = driver:ask("report", { id = "i" .. i })
			until report.wait
			shortest, longest = math.min(shortest, report.wait), math.max(longest, report.wait)
		end
		return shortest, longest
	end

	it("come to be looked up together, every 30 s, in one request", function()
		local count = 8
		for i = 1, count do
			ask("i" .. i, { kind = "Kind" .. i, optional = 1 })
		end
		driver:order "start"
		server:discover(true)
		local shortest, longest = waits(count)
		for _ = 1, 40 do
			if shortest > 29 then
				break
			end
			driver:advance(shortest + 0.01)
			none()
			shortest, longest = waits(count)
		end
		assert(shortest > 29 and longest <= 30, ("waits from %g to %g s"):format(shortest, longest))
		local attempts = driver:ask("report", { id = "i" .. count }).attempts
		driver:advance(longest + 0.01)
		none()
		waits(count)
		silent()
		assert.equal(attempts + 1, driver:ask("report", { id = "i" .. count }).attempts)
	end)
end)
