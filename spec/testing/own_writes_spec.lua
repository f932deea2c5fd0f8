-- A script reads its own writes: what the server answered shows in its caches before the watch tells of it.
local files = require "support.files"
local k8s = require "perilune"
local testing = require "perilune.testing"

local LONG = 700 -- seconds: a silent watch is over by then, and the next one has told all

-- Each script puts what it found into the map notes/found.
local PRELUDE = [[
local k8s = require "perilune"
local found = {}
local function reference(name, more)
	local object = { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "shop", name = name } }
	for key, value in pairs(more or {}) do
		object[key] = value
	end
	return object
end
local function labelled(name, labels)
	return reference(name, { metadata = { namespace = "shop", name = name, labels = labels } })
end
local function data(object)
	return object and object.data and object.data.v
end
local function tell()
	assert(k8s.patch({ apiVersion = "v1", kind = "ConfigMap", namespace = "notes", name = "found" }, { data = { text = k8s.json.encode(found) } }))
end
]]

local function map(name, v, labels)
	return { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "shop", name = name, labels = labels }, data = { v = v } }
end

describe("a script that writes while its watch is silent", function()
	local cluster, silence

	before_each(function()
		cluster = testing.cluster()
		for _, name in ipairs { "shop", "notes" } do
			assert(cluster:create { apiVersion = "v1", kind = "Namespace", metadata = { name = name } })
		end
		assert(cluster:create { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "notes", name = "found" } })
		assert(cluster:create(map("a", "old", { app = "web" })))
		silence = cluster:fault { verb = "watch", resource = "configmaps", namespace = "shop", action = "silence" }
	end)

	local function load(text, options)
		cluster:load(files.write(files.folder() .. "/script.lua", PRELUDE .. text), options)
		cluster:settle()
	end

	local function found()
		local notes = assert(cluster:get { apiVersion = "v1", kind = "ConfigMap", namespace = "notes", name = "found" })
		return k8s.json.decode(notes.data.text)
	end

	it("sees creates, updates and patches at once, by name, in lists and by index", function()
		load [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "shop", page_size = 500, index = { v = "data.v" } }
			k8s.on_synced(function()
				local object = assert(k8s.create(reference("b", { data = { v = "created" } })))
				found.created = { data(maps:get("shop", "b")), maps:count(), #maps:keys(), #maps:list { index = { v = "created" } } }
				object.data.v = "updated"
				assert(k8s.update(object))
				found.updated = { data(maps:get("shop", "b")), #maps:list { index = { v = "created" } }, #maps:list { index = { v = "updated" } } }
				assert(k8s.patch(reference "a", { data = { v = "patched" } }))
				found.patched = { data(maps:get("shop", "a")), #maps:list { index = { v = "old" } } }
				local named = assert(k8s.create { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "shop", generateName = "g-" } })
				found.generated = maps:get(named) ~= nil
				tell()
			end)
		]]
		assert.same({
			created = { "created", 2, 2, 1 }, updated = { "updated", 0, 1 }, patched = { "patched", 0 },
			generated = true,
		}, found())
	end)

	it("sees deletes at once, and what is created anew under the name", function()
		load [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "shop", page_size = 500 }
			k8s.on_synced(function()
				assert(k8s.delete(reference "a"))
				found.deleted = { maps:get("shop", "a") ~= nil, maps:count() }
				local object = assert(k8s.create(reference("a", { data = { v = "anew" } })))
				found.anew = { data(maps:get("shop", "a")), maps:get("shop", "a").metadata.uid == object.metadata.uid }
				tell()
			end)
		]]
		assert.same({ deleted = { false, 0 }, anew = { "anew", true } }, found())
	end)

	it("still sees what finalizers keep, as it is being deleted, until the last one goes", function()
		load [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "shop", page_size = 500 }
			k8s.on_synced(function()
				assert(k8s.patch(reference "a", { metadata = { finalizers = { "example.com/keep" } } }))
				assert(k8s.delete(reference "a"))
				local kept = maps:get("shop", "a")
				found.kept = kept ~= nil and kept.metadata.deletionTimestamp ~= nil
				assert(k8s.patch(reference "a", { metadata = { finalizers = k8s.null } }))
				found.gone = maps:get("shop", "a") == nil
				tell()
			end)
		]]
		assert.same({ kept = true, gone = true }, found())
	end)

	it("sees nothing of a dry run, nor of a write that failed", function()
		load [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "shop", page_size = 500 }
			k8s.on_synced(function()
				assert(k8s.patch(reference "a", { data = { v = "tried" } }, { dry_run = true }))
				assert(k8s.create(reference "b", { dry_run = true }))
				assert(k8s.delete(reference "a", { dry_run = true, propagation = "Background" }))
				k8s.create(reference "a")
				found = { data(maps:get("shop", "a")), maps:count() }
				tell()
			end)
		]]
		assert.same({ "old", 1 }, found())
	end)

	it("sees objects come into its selector and leave it", function()
		load [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "shop", page_size = 500, label_selector = "app=web" }
			k8s.on_synced(function()
				assert(k8s.create(labelled("b", { app = "db" })))
				assert(k8s.create(labelled("c", { app = "web" })))
				found.created = maps:keys()
				assert(k8s.patch(reference "a", { metadata = { labels = { app = "db" } } }))
				assert(k8s.patch(reference "b", { metadata = { labels = { app = "web" } } }))
				found.moved = maps:keys()
				table.sort(found.moved)
				tell()
			end)
		]]
		assert.same({ created = { "shop/a", "shop/c" }, moved = { "shop/b", "shop/c" } }, found())
	end)

	it("sees of what a field selector names only what was there before", function()
		load [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "shop", page_size = 500, field_selector = "metadata.name=a" }
			k8s.on_synced(function()
				assert(k8s.create(reference "b"))
				assert(k8s.patch(reference "a", { data = { v = "new" } }))
				found = { maps:keys(), data(maps:get("shop", "a")) }
				tell()
			end)
		]]
		assert.same({ { "shop/a" }, "new" }, found())
	end)

	it("sees its writes as its informers keep objects, and in the namespaces that they have", function()
		load [[
			local options = { apiVersion = "v1", kind = "ConfigMap", namespace = { "shop", "notes" }, page_size = 500 }
			local function informer(more)
				for key, value in pairs(options) do
					more[key] = value
				end
				return k8s.informer(more)
			end
			local meta, dropped = informer { metadata_only = true }, informer { drop = { "data.secret" } }
			local changed = informer { transform = function(object) object.data = { v = "transformed" } return object end }
			k8s.on_synced(function()
				assert(k8s.create(reference("b", { data = { v = "1", secret = "2" } })))
				assert(k8s.create { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "default", name = "b" } })
				local one, two, three = meta:get("shop", "b"), dropped:get("shop", "b"), changed:get("shop", "b")
				found = { one.kind, one.data == nil, two.data, data(three), meta:get("default", "b") == nil, two.metadata.managedFields ~= nil }
				tell()
			end)
		]]
		assert.same({ "ConfigMap", true, { v = "1" }, "transformed", true, true }, found())
	end)

	it("is told by the watch alone, from what the watch told before, while reads stay at the newest", function()
		load [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "shop", page_size = 500 }
			local function note(what, object, event)
				table.insert(found, ("%s %s from %s, reads %s"):format(what, tostring(data(object)), tostring(event.old and data(event.old)),
					tostring(data(maps:get("shop", "a")))))
			end
			local handlers = { every_event = true,
				add = function(object, event) note("add", object, event) end,
				update = function(object, event) note("update", object, event) end,
				delete = function(object, event) note("delete", object, event) end,
			}
			maps:add_event_handler(handlers)
			k8s.main(function()
				k8s.sleep(10)
				assert(k8s.patch(reference "a", { data = { v = "own" } }))
				table.insert(found, "wrote")
				maps:add_event_handler { resync = 5, add = function(object, event) note("late add", object, event) end,
					update = function(object, event) if event.resync then note("resync", object, event) end end }
				k8s.sleep(7)
				k8s.every(1000, tell)
			end)
		]]
		cluster:advance(5)
		assert(cluster:update(map("a", "theirs")))
		cluster:advance(2 * LONG)
		local lines, seen = {}, {}
		for _, line in ipairs(found()) do
			if not seen[line] then
				seen[line] = true
				lines[#lines + 1] = line
			end
		end
		assert.same({
			"add old from nil, reads old", "wrote", "late add old from nil, reads own", "resync old from old, reads own",
			"update theirs from old, reads own", "update own from theirs, reads own", "resync own from own, reads own",
		}, lines)
	end)

	it("does not see an object that it deleted come back with a late event", function()
		load [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "shop", page_size = 500 }
			maps:add_event_handler { every_event = true,
				update = function(object) table.insert(found, { "update", data(object), maps:get("shop", "a") == nil }) end,
				delete = function(object) table.insert(found, { "delete", data(object), maps:get("shop", "a") == nil }) end,
			}
			k8s.main(function()
				k8s.sleep(10)
				assert(k8s.delete(reference "a"))
				maps:add_event_handler {
					add = function(object) table.insert(found, { "late add", data(object), maps:get("shop", "a") == nil }) end,
				}
				k8s.every(1000, tell)
			end)
		]]
		cluster:advance(5)
		assert(cluster:update(map("a", "theirs")))
		cluster:advance(2 * LONG)
		assert.same({ { "late add", "old", true }, { "update", "theirs", true }, { "delete", "theirs", true } }, found())
	end)

	it("does not see what the watch told to be gone before the answer came", function()
		silence:remove()
		load [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "shop" }
			k8s.main(function()
				k8s.sleep(5)
				assert(k8s.create(reference "b"))
				found = { maps:get("shop", "b") == nil }
				tell()
			end)
		]]
		cluster:fault { verb = "create", resource = "configmaps", action = "slow", bytes_per_second = 10 }
		cluster:advance(6)
		assert(cluster:delete(map "b"))
		cluster:advance(100)
		assert.same({ true }, found())
	end)

	it("sees what it wrote before its informer had synced", function()
		cluster:fault { verb = "list", resource = "configmaps", action = "status", code = 503, retry_after = 5 }
		load [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "shop", page_size = 500 }
			k8s.main(function()
				k8s.factory():start()
				assert(k8s.create(reference("b", { data = { v = "early" } })))
			end)
			k8s.on_synced(function()
				found = { data(maps:get("shop", "b")), maps:count() }
				tell()
			end)
		]]
		cluster:advance(10)
		assert.same({ "early", 2 }, found())
	end)

	it("sees the status that it wrote", function()
		local spec = { containers = { { name = "c", image = "example.com/i" } } }
		assert(cluster:create { apiVersion = "v1", kind = "Pod", metadata = { namespace = "shop", name = "p" }, spec = spec })
		cluster:fault { verb = "watch", resource = "pods", action = "silence" }
		load [[
			local pods = k8s.informer { apiVersion = "v1", kind = "Pod", namespace = "shop", page_size = 500 }
			k8s.on_synced(function()
				assert(k8s.status.patch({ apiVersion = "v1", kind = "Pod", namespace = "shop", name = "p" }, { status = { phase = "Running" } }))
				found = { pods:get("shop", "p").status.phase }
				tell()
			end)
		]]
		assert.same({ "Running" }, found())
	end)
end)
