-- k8s.event: what is sent, what is only counted, and when.
local files = require "support.files"
local k8s = require "perilune"
local testing = require "perilune.testing"

-- Each line of the ConfigMap "orders" is a call, made when it comes. What was sent in vain is in the log.
local SCRIPT = [[
local k8s = require "perilune"
local orders = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "default" }
local function run(map)
	if map.metadata.name == "orders" and map.data then
		local f = assert(loadstring("local k8s, map = ... " .. map.data.call))
		local ok, problem = pcall(f, k8s, map)
		if not ok then k8s.log.warn("problem " .. tostring(problem)) end
	end
end
orders:add_event_handler { add = run, update = run }
]]

describe("k8s.event", function()
	local cluster

	local function load(name)
		local path = files.folder() .. "/" .. (name or "team") .. ".lua"
		cluster:load(files.write(path, SCRIPT))
		cluster:settle()
	end

	before_each(function()
		cluster = testing.cluster()
		assert(cluster:create { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "default", name = "orders" } })
	end)

	local serial = 0

	local function call(code)
		serial = serial + 1
		assert(cluster:patch({ apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = "orders" },
			{ data = { call = code, serial = tostring(serial) } }))
		cluster:settle()
	end

	local function events()
		local items = assert(cluster:list { apiVersion = "events.k8s.io/v1", kind = "Event" })
		table.sort(items, function(a, b)
			return a.metadata.name < b.metadata.name
		end)
		return items
	end

	local function sent(verb)
		return #cluster:requests { verb = verb, kind = "Event" }
	end

	it("has all that an Event must have", function()
		load()
		call [[k8s.event(map, { reason = "Synced", action = "Sync", message = "all is well", type = "Warning", related = {
			apiVersion = "v1", kind = "Node", name = "n1" } })]]
		local event = assert(events()[1], cluster:logs())
		local map = assert(cluster:get { apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = "orders" })
		assert.same({
			apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = "orders", uid = map.metadata.uid,
			resourceVersion = map.metadata.resourceVersion,
		}, event.regarding)
		assert.same({ apiVersion = "v1", kind = "Node", name = "n1" }, event.related)
		assert.same({ "default", "Warning", "Synced", "Sync", "all is well" },
			{ event.metadata.namespace, event.type, event.reason, event.action, event.note })
		assert.matches("^orders%.%x+$", event.metadata.name)
		assert.matches("^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%d%d%d%dZ$", event.eventTime)
		assert.equal("perilune/team", event.reportingController)
		assert.matches("^perilune%-.", event.reportingInstance)
	end)

	it("takes the reason for the action, Normal for the type, and a cluster-scoped object's event to the namespace default", function()
		load()
		call [[k8s.event({ apiVersion = "rbac.authorization.k8s.io/v1", kind = "ClusterRole", metadata = { name = "system:Node", uid = "u" } },
			{ reason = "Seen" })]]
		local event = events()[1]
		assert.same({ "default", "Seen", "Normal" }, { event.metadata.namespace, event.action, event.type })
		assert.is_nil(event.regarding.namespace)
		assert.matches("^event%.%x+$", event.metadata.name)
	end)

	it("knows the uid of an object that is only named, where a cache has it", function()
		load()
		call [[k8s.event({ apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = "orders" }, { reason = "A" })]]
		call [[k8s.event({ apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = "gone" }, { reason = "A" })]]
		local map = assert(cluster:get { apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = "orders" })
		local uids = {}
		for _, event in ipairs(events()) do
			uids[event.regarding.name] = event.regarding.uid or "none"
		end
		assert.same({ orders = map.metadata.uid, gone = "none" }, uids)
	end)

	it("takes the namespace of -n for a namespaced kind without one", function()
		assert(cluster:create { apiVersion = "v1", kind = "Namespace", metadata = { name = "shop" } })
		local path = files.write(files.folder() .. "/team.lua", [[
			local k8s = require "perilune"
			k8s.informer { apiVersion = "v1", kind = "ConfigMap" }
			k8s.on_synced(function()
				assert(k8s.event({ apiVersion = "v1", kind = "ConfigMap", name = "a" }, { reason = "A" }))
				assert(k8s.event({ apiVersion = "v1", kind = "Node", name = "n" }, { reason = "A" }))
			end)
		]])
		cluster:load(path, { namespace = "shop" })
		cluster:settle()
		local places = {}
		for _, event in ipairs(events()) do
			places[event.regarding.name] = event.metadata.namespace .. " " .. (event.regarding.namespace or "none")
		end
		assert.same({ a = "shop shop", n = "default none" }, places)
	end)

	it("makes a source's name fit", function()
		load("_ümlaut.v2-") -- no letter or digit at either end
		call [[k8s.event(map, { reason = "A" })]]
		assert.matches("^perilune/%w[%w._-]*%w$", events()[1].reportingController)
	end)

	it("cuts a message at 1024 bytes, between characters, and mends what is no UTF-8", function()
		load()
		call [[k8s.event(map, { reason = "Long", message = ("é"):rep(511) .. "x" .. ("é"):rep(5) })]]
		assert.equal(("é"):rep(511) .. "x", events()[1].note)
		call [[k8s.event(map, { reason = "Broken", message = "a\255b" })]]
		assert.equal("a\239\191\189b", events()[2].note)
	end)

	it("makes a series of what is alike, and sends the last count when six minutes have passed", function()
		load()
		call [[for i = 1, 5 do k8s.event(map, { reason = "Again", message = "time " .. i }) end]]
		assert.same({ 1, 1 }, { sent "create", sent "patch" })
		assert.equal(2, events()[1].series.count)
		assert.equal("time 1", events()[1].note)
		cluster:advance(420)
		assert.same({ 1, 2 }, { sent "create", sent "patch" })
		assert.equal(5, events()[1].series.count)
		call [[k8s.event(map, { reason = "Again" })]]
		assert.equal(2, #events())
	end)

	it("sends the count of a series that goes on each half an hour", function()
		load()
		for _ = 1, 40 do
			call [[k8s.event(map, { reason = "Again" })]]
			cluster:advance(60)
		end
		assert.same({ 1, 2 }, { sent "create", sent "patch" })
		assert.is_true(events()[1].series.count >= 30)
	end)

	it("begins again where the server has forgotten the event", function()
		load()
		call [[k8s.event(map, { reason = "Again" })]]
		assert(cluster:delete(events()[1]))
		call [[k8s.event(map, { reason = "Again" })]]
		assert.equal(2, events()[1].series.count)
	end)

	it("keeps those apart that differ in object, type, reason, action or source", function()
		load()
		call [[
			local other = { apiVersion = "v1", kind = "Secret", metadata = { namespace = "default", name = "orders", uid = "s" } }
			k8s.event(map, { reason = "A" })
			k8s.event(other, { reason = "A" })
			k8s.event(map, { reason = "A", type = "Warning" })
			k8s.event(map, { reason = "B" })
			k8s.event(map, { reason = "A", action = "C" })
			k8s.event(map, { reason = "A", related = other })
		]]
		assert.same({ 6, 0 }, { sent "create", sent "patch" })
	end)

	it("sends 25 for one object at once, then one in 300 s, and others for other objects", function()
		load()
		local many = [[for i = 1, 40 do assert(k8s.event(map, { reason = "R" .. i .. "x" .. map.data.serial })) end ]]
		call(many)
		assert.equal(25, sent "create")
		call [[k8s.event({ apiVersion = "v1", kind = "Node", name = "n1" }, { reason = "Other" })]]
		assert.equal(26, sent "create")
		cluster:advance(301)
		call(many)
		assert.equal(27, sent "create")
	end)

	it("counts what comes while the first of its like is being created", function()
		load()
		call [[
			for i = 1, 3 do k8s.on_synced(function() k8s.event(map, { reason = "Together" }) end) end
		]]
		assert.equal(1, sent "create")
		assert.is_true(events()[1].series.count >= 2)
	end)

	it("returns the server's answer, and errors as any call, after which the next one tries again", function()
		load()
		cluster:fault { verb = "create", resource = "events", times = 1, action = "status", code = 403, reason = "Forbidden" }
		call [[
			local event, err = k8s.event(map, { reason = "A" })
			assert(event == nil and err.code == 403)
			event = assert(k8s.event(map, { reason = "A" }))
			assert(event.metadata.uid)
			event = assert(k8s.event(map, { reason = "A" }))
			assert(event.series.count == 2)
			event = assert(k8s.event(map, { reason = "A" }))
			event.note = "changed by the script"
			error "fine"
		]]
		assert.matches("problem .*fine", k8s.json.encode(cluster:logs()))
		assert.equal(1, #events())
	end)

	it("raises for what an Event can't have", function()
		load()
		for code, problem in pairs {
			['(map, {})'] = "reason must be a text of 1 to 128 bytes, not nil",
			['(map, { reason = ("r"):rep(129) })'] = "reason must be a text of 1 to 128 bytes",
			['(map, { reason = "A", action = "" })'] = "action must be a text of 1 to 128 bytes",
			['(map, { reason = "A", type = "Error" })'] = "type must be Normal or Warning, not Error",
			['(map, { reason = "A", mesage = "b" })'] = "did you mean 'message'",
			['(map, { reason = "A", message = 5 })'] = "message must be a text, not a number",
			['("map", { reason = "A" })'] = "the object must be an object or a reference, not a string",
			['({ apiVersion = "v1", kind = "Pod" }, { reason = "A" })'] = "name of the object must be a text, not nil",
			['(map, { reason = "A", related = { kind = "Pod" } })'] = "apiVersion of related must be a text, not nil",
		} do
			call("k8s.event" .. code)
			local logs = cluster:logs()
			assert.truthy(logs[#logs].msg:find(problem, 1, true), logs[#logs].msg)
		end
		assert.equal(0, sent "create")
	end)
end)
