-- k8s.controller: which keys are reconciled, when, how often and how they come back.
local files = require "support.files"
local testing = require "perilune.testing"

local HEAD = [[
	local k8s = require "perilune"
	local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap" }
	local function tell(what, fields) k8s.log.info(what, fields) end
]]

describe("a controller", function()
	local cluster

	before_each(function()
		cluster = testing.cluster { quiet = true }
	end)

	local function load(text)
		local folder = files.folder() .. "/keys"
		os.execute("mkdir " .. folder)
		files.write(folder .. "/init.lua", HEAD .. text)
		cluster:load(folder)
		cluster:settle()
	end

	local function map(name, fields)
		fields = fields or {}
		return { apiVersion = "v1", kind = "ConfigMap", data = fields.data, metadata = { namespace = fields.namespace or "default", name = name,
			labels = fields.labels, finalizers = fields.finalizers, ownerReferences = fields.owners } }
	end

	-- What the script told with this message, in order: the values of a field.
	local function told(what, field)
		local values = {}
		for _, line in ipairs(cluster:logs { msg = what }) do
			values[#values + 1] = line[field or "name"]
		end
		return values
	end

	local function sorted(values)
		table.sort(values)
		return values
	end

	describe("'s keys", function()
		it("are those of what is there at the start and of each change, by a request that names the object", function()
			assert(cluster:create(map "old"))
			load [[k8s.controller { name = "keys", watch = maps, reconcile = function(request)
				tell("ran", { key = request.apiVersion .. " " .. request.kind .. " " .. request.namespace .. "/" .. request.name,
					there = maps:get(request) ~= nil })
			end }]]
			assert(cluster:create(map "new"))
			cluster:settle()
			assert(cluster:delete(map "old"))
			cluster:settle()
			assert.same({ "v1 ConfigMap default/old", "v1 ConfigMap default/new", "v1 ConfigMap default/old" }, told("ran", "key"))
			assert.same({ "true", "true", "false" }, told("ran", "there"))
		end)

		it("wait at most once, and run once more where they were added while they were worked on", function()
			load [[local keys = k8s.controller { name = "keys", watch = maps, workers = 4, reconcile = function(request)
				tell("begins", { name = request.name })
				k8s.sleep(10)
				tell("ends", { name = request.name })
			end }
			k8s.every(3, function() for _ = 1, 5 do keys:enqueue { namespace = "default", name = "a" } end end)]]
			cluster:advance(24)
			-- From 3 to 13, at once again to 23, and again.
			assert.equal(3, #told "begins")
			assert.equal(2, #told "ends")
		end)

		it("come from what an object owns, by group, kind and uid of its controller", function()
			local owner = assert(cluster:create(map "owner"))
			load [[
				local secrets = k8s.informer { apiVersion = "v1", kind = "Secret" }
				local pods = k8s.informer { apiVersion = "v1", kind = "Pod" }
				k8s.controller { name = "keys", watch = maps, owns = { secrets, { pods, controller = false } }, reconcile = function(request)
					tell("ran", { name = request.name })
				end }]]
			local function child(kind, name, reference)
				for key, value in pairs { apiVersion = "v1", kind = "ConfigMap", name = "owner", uid = owner.metadata.uid, controller = true } do
					if reference[key] == nil then
						reference[key] = value
					end
				end
				assert(cluster:create { apiVersion = "v1", kind = kind, metadata = { namespace = "default", name = name, ownerReferences = { reference } },
					spec = kind == "Pod" and { containers = { { name = "c", image = "example.com/c" } } } or nil })
				cluster:settle()
				return #told "ran"
			end
			assert.equal(1, #told "ran")
			assert.equal(2, child("Secret", "own", {}))
			assert.equal(2, child("Secret", "other-group", { apiVersion = "example.com/v1" }))
			assert.equal(2, child("Secret", "other-kind", { kind = "Pod" }))
			assert.equal(2, child("Secret", "not-its-controller", { controller = false }))
			assert.equal(3, child("Pod", "not-its-controller", { controller = false }))
			assert.equal(3, child("Secret", "of-an-earlier-one", { uid = "gone" }))
			assert(cluster:delete { apiVersion = "v1", kind = "Secret", namespace = "default", name = "own" })
			cluster:settle()
			assert.equal(4, #told "ran")
		end)

		it("come from what was owned and is gone before its watch told of it: the reconcile has seen its own write", function()
			cluster:fault { verb = "watch", resource = "secrets", action = "silence", times = 1 }
			load [[
				local secrets = k8s.informer { apiVersion = "v1", kind = "Secret", page_size = 500 }
				k8s.controller { name = "keys", watch = maps, owns = { secrets }, reconcile = function(request)
					local object = maps:get(request)
					if object and request.name == "owner" and not secrets:get("default", "own") then
						assert(k8s.create(k8s.set_owner({ apiVersion = "v1", kind = "Secret", metadata = { namespace = "default", name = "own" } }, object)))
					end
					tell("ran", { seen = secrets:get("default", "own") ~= nil })
				end }]]
			local own = { apiVersion = "v1", kind = "Secret", namespace = "default", name = "own" }
			assert(cluster:create(map "owner"))
			cluster:settle()
			assert.equal("true", told("ran", "seen")[1])
			assert(cluster:delete(own))
			cluster:advance(700) -- until the next watch, which tells of both
			assert(cluster:get(own))
		end)

		it("are those of a cluster-scoped owner too", function()
			local owner = assert(cluster:create { apiVersion = "v1", kind = "Namespace", metadata = { name = "shop" } })
			load [[
				local namespaces = k8s.informer { apiVersion = "v1", kind = "Namespace", field_selector = "metadata.name=shop" }
				k8s.controller { name = "keys", watch = namespaces, owns = { maps }, reconcile = function(request)
					tell("ran", { name = request.name, namespace = request.namespace })
				end }]]
			assert(cluster:create(map("a", { namespace = "shop", owners = {
				{ apiVersion = "v1", kind = "Namespace", name = "shop", uid = owner.metadata.uid, controller = true } } })))
			cluster:settle()
			assert.same({ "shop", "shop" }, told "ran")
			assert.same({}, told("ran", "namespace"))
		end)

		it("are of nothing where what names the owner is no name: a slash would lead to another namespace", function()
			load [[
				local namespaces = k8s.informer { apiVersion = "v1", kind = "Namespace", field_selector = "metadata.name=shop" }
				k8s.controller { name = "keys", watch = namespaces, owns = { maps }, reconcile = function(request)
					tell("ran", { name = request.name })
				end }]]
			for i, name in ipairs { "other/shop", "shop/", "/", ("x"):rep(254), "fine" } do
				assert(cluster:create(map("child-" .. i, { owners = { { apiVersion = "v1", kind = "Namespace", name = name, uid = "1", controller = true } } })))
			end
			cluster:settle()
			assert.same({ "fine" }, told "ran")
		end)

		it("come from a map, which sees the old object too", function()
			load [[
				local secrets = k8s.informer { apiVersion = "v1", kind = "Secret" }
				k8s.controller { name = "keys", watch = maps, map = { [secrets] = function(secret, event)
					if event.type == "delete" then
						return { { name = "one", namespace = "default" }, { metadata = { name = "two", namespace = "default" } } }
					end
					return { name = secret.metadata.labels.to, namespace = "default" }
				end }, reconcile = function(request) tell("ran", { name = request.name }) end }]]
			local secret = { apiVersion = "v1", kind = "Secret", metadata = { namespace = "default", name = "s", labels = { to = "a" } } }
			assert(cluster:create(secret))
			cluster:settle()
			assert(cluster:patch(secret, { metadata = { labels = { to = "b" } } }))
			cluster:settle()
			assert.same({ "a", "a", "b" }, sorted(told "ran"))
			assert(cluster:delete(secret))
			cluster:settle()
			assert.same({ "a", "a", "b", "one", "two" }, sorted(told "ran"))
		end)

		it("go on where a map fails, which is logged with its line", function()
			load [[
				k8s.controller { name = "keys", watch = maps, map = { [maps] = function() return { { namespace = "x" } } end },
					reconcile = function(request) tell("ran", { name = request.name }) end }]]
			assert(cluster:create(map "a"))
			cluster:settle()
			assert.same({ "a" }, told "ran")
			local errors = cluster:logs { level = "error" }
			assert.equal(1, #errors)
			assert.matches("init.lua:4: element 1 of what it returned is no reference", errors[1].error)
		end)

		it("are not lost unseen where a map returns neither a reference nor a list", function()
			load [[
				k8s.controller { name = "keys", watch = maps, map = { [maps] = function() return { namespace = "x" } end }, reconcile = function() end }]]
			assert(cluster:create(map "a"))
			cluster:settle()
			assert.matches("init.lua:4: returned a table that is no reference", cluster:logs({ level = "error" })[1].error)
		end)

		it("are refused, not cut, where a name holds a NUL", function()
			load [[
				local keys = k8s.controller { name = "keys", watch = maps, reconcile = function(request) tell("ran", { name = request.name }) end }
				tell("refused", { why = select(2, pcall(keys.enqueue, keys, { namespace = "default", name = "a\0b" })) })]]
			assert.matches("'name' holds a NUL character", told("refused", "why")[1], 1, true)
			assert.same({}, told "ran")
		end)

		it("are dropped by a function that refuses the event of one source, and by no other", function()
			load [[
				local secrets = k8s.informer { apiVersion = "v1", kind = "Secret" }
				k8s.controller { name = "keys",
					watch = { maps, when = function(object, event) return event.type ~= "update" or event.old.data.x ~= object.data.x end },
					owns = { secrets },
					reconcile = function(request) tell("ran", { name = request.name }) end }]]
			local owner = assert(cluster:create(map("a", { data = { x = "1" } })))
			cluster:settle()
			assert.equal(1, #told "ran")
			assert(cluster:patch(map "a", { metadata = { labels = { b = "c" } } }))
			cluster:settle()
			assert.equal(1, #told "ran")
			assert(cluster:create { apiVersion = "v1", kind = "Secret", metadata = { namespace = "default", name = "s", ownerReferences = {
				{ apiVersion = "v1", kind = "ConfigMap", name = "a", uid = owner.metadata.uid, controller = true } } } })
			cluster:settle()
			assert.equal(2, #told "ran")
			assert(cluster:patch(map "a", { data = { x = "2" } }))
			cluster:settle()
			assert.equal(3, #told "ran")
		end)

		it("of a new object are not behind the thousands that were there", function()
			for i = 1, 600 do
				assert(cluster:create(map("old" .. i)))
			end
			load [[k8s.controller { name = "keys", watch = maps, reconcile = function(request)
				k8s.sleep(0.1)
				tell("ran", { name = request.name })
			end }]]
			assert(cluster:create(map "new"))
			cluster:advance(1)
			local names = {}
			for _, name in ipairs(told "ran") do
				names[name] = true
			end
			assert.truthy(names.new)
			cluster:advance(60)
			assert.equal(601, #told "ran")
		end)
	end)

	describe("'s reconcile", function()
		local function times(text, seconds)
			load(([[
				local start, tries, keys = nil, 0, nil
				keys = k8s.controller { name = "keys", watch = { maps, when = function() return false end }, reconcile = function(request, context)
					start, tries = start or k8s.now(), tries + 1
					tell("ran", { at = ("%%.3f"):format(k8s.now() - start), attempt = context.attempt })
					%s
				end }
				k8s.on_synced(function() keys:enqueue { namespace = "default", name = "a" } end)]]):format(text))
			cluster:advance(seconds)
			return told("ran", "at")
		end

		it("that fails comes back after 5, 10, 20, 40, 80 ms, and counts its attempts", function()
			assert.same({ "0.000", "0.005", "0.015", "0.035", "0.075", "0.155" }, times([[if tries < 6 then error "not yet" end]], 30))
			assert.same({ "1", "2", "3", "4", "5", "6" }, told("ran", "attempt"))
			local errors = cluster:logs { level = "error", controller = "keys", name = "a", namespace = "default" }
			assert.equal(5, #errors)
			assert.equal("reconcile failed, the next try is in 0.08 s", errors[5].msg)
			assert.equal("5", errors[5].attempt)
		end)

		it("that returns nil and an err has failed", function()
			assert.same({ "0.000", "0.005" }, times([[if tries < 2 then return nil, "not yet" end]], 30))
			assert.equal("not yet", cluster:logs({ level = "error" })[1].error)
		end)

		it("forgets its failures with the first success", function()
			assert.same({ "0.000", "0.005", "0.015", "1.015", "1.020" },
				times([[if tries == 3 then return { requeue_after = 1 } elseif tries < 5 then error "not yet" end]], 30))
		end)

		it("that asks for it comes back, at the earliest of the times that were named", function()
			assert.same({ "0.000", "4.000", "14.000" }, times([[
				if tries == 1 then
					keys:enqueue({ namespace = "default", name = "a" }, { after = 7 })
					keys:enqueue({ namespace = "default", name = "a" }, { after = 4 })
				end
				if tries < 3 then return { requeue_after = 10 } end]], 100))
		end)

		it("that ends with k8s.terminal is not tried again", function()
			assert.same({ "0.000" }, times([[k8s.terminal "spec.size is negative"]], 2000))
			local errors = cluster:logs { level = "error" }
			assert.equal(1, #errors)
			assert.equal("reconcile failed, it is not tried again", errors[1].msg)
			assert.matches("Terminal: spec.size is negative", errors[1].error)
		end)

		it("that meets a conflict is tried again, quietly", function()
			assert(cluster:create(map "target"))
			cluster:fault { verb = "update", resource = "configmaps", action = "conflict", times = 1 }
			assert.equal(2, #times([[
				local target = assert(k8s.get { apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = "target" })
				target.data = { tries = "" .. tries }
				assert(k8s.update(target))]], 30))
			assert.same({}, cluster:logs { level = "error" })
		end)

		it("that takes longer than its timeout is cancelled and fails", function()
			load [[k8s.controller { name = "keys", watch = maps, timeout = 5, reconcile = function(_, context)
				tell("ran", { left = context.deadline - k8s.now() })
				k8s.sleep(context.attempt == 1 and 60 or 1)
				tell "done"
			end }]]
			assert(cluster:create(map "a"))
			cluster:advance(4.9)
			assert.equal(1, #told("ran", "left"))
			cluster:advance(30)
			assert.same({ "5", "5" }, told("ran", "left"))
			assert.equal(1, #told("done", "script"))
			assert.matches("longer than 5 s %(timeout%)", cluster:logs({ level = "error" })[1].error)
		end)

		it("says what it logs with the controller and the object", function()
			load [[k8s.controller { name = "keys", watch = maps, reconcile = function(_, context) context.log.warn("careful", { size = 3 }) end }]]
			assert(cluster:create(map "a"))
			cluster:settle()
			assert.equal(1, #cluster:logs { msg = "careful", level = "warn", controller = "keys", namespace = "default", name = "a", size = "3" })
		end)

		it("is told at its own line that context.log takes a text and fields", function()
			load [[k8s.controller { name = "keys", watch = maps, reconcile = function(_, context) context.log.warn("careful", 3) end }]]
			assert(cluster:create(map "a"))
			cluster:settle()
			assert.matches("init.lua:4: context.log.warn takes a text and a table of fields", cluster:logs({ level = "error" })[1].error, 1, true)
		end)

		it("that returns anything else is told so", function()
			assert.equal(2, #times([[if tries == 1 then return { requeue = true } end]], 1))
			assert.matches("its result has no 'requeue', only requeue_after", cluster:logs({ level = "error" })[1].error)
		end)

		it("is never in two workers for one key, and all keys end done, however many fail", function()
			local seed = os.time() % 100000
			load(([[
				local random, running, most, left = %d, {}, 0, 10000
				local function chance()
					random = (random * 16807) %% 2147483647
					return random / 2147483647
				end
				local active, keys = 0, nil
				keys = k8s.controller { name = "keys", watch = maps, workers = 8, reconcile = function(request)
					assert(not running[request.name], "two workers on " .. request.name)
					running[request.name], active = true, active + 1
					most = math.max(most, active)
					if chance() < 0.5 then k8s.sleep(chance() * 0.01) end
					if chance() < 0.05 then keys:enqueue(request) end
					running[request.name], active = nil, active - 1
					if chance() < 0.2 then return nil, "bad luck" end
					if chance() < 0.1 then return { requeue_after = chance() } end
				end }
				k8s.on_synced(function()
					for i = 1, 10000 do keys:enqueue { namespace = "default", name = "key" .. i } end
				end)
				k8s.on_shutdown(function() end)
				k8s.every(1, function() tell("state", { active = active, most = most }) end)]]):format(seed))
			cluster:advance(120)
			for _, line in ipairs(cluster:logs { level = "error" }) do
				assert(not line.error:find "two workers", line.error .. " SEED=" .. seed)
			end
			local states = told("state", "most")
			assert.equal("8", states[#states], "SEED=" .. seed)
			assert.equal("0", told("state", "active")[#states], "SEED=" .. seed)
		end)
	end)

	describe("that brings its own keys back", function()
		-- So many reconciles that each write, within so many seconds.
		local function runs(count, seconds)
			load(([[
				local count = 0
				k8s.controller { name = "keys", watch = maps, reconcile = function(request)
					count = count + 1
					tell("ran", { name = request.name })
					if count <= %d then assert(k8s.patch(request, { data = { count = tostring(count) } })) end
				end }]]):format(count))
			assert(cluster:create(map "a"))
			cluster:advance(seconds)
			return #told "ran"
		end

		it("more than 20 times in 10 s is reported once, and slowed", function()
			-- 21 at once; then after 1, 2, 4 and 8 s.
			assert.equal(25, runs(1000, 20))
			local warnings = cluster:logs { level = "warn", controller = "keys", name = "a", namespace = "default" }
			assert.equal(1, #warnings)
			assert.matches("^hot loop", warnings[1].msg)
		end)

		it("a few times is not slowed", function()
			assert.equal(21, runs(20, 5))
			assert.same({}, cluster:logs { level = "warn" })
		end)

		it("is not slowed for what others write", function()
			load [[k8s.controller { name = "keys", watch = maps, reconcile = function(request) tell("ran", { name = request.name }) end }]]
			assert(cluster:create(map "a"))
			cluster:settle()
			for i = 1, 50 do
				assert(cluster:patch(map "a", { data = { i = tostring(i) } }))
				cluster:settle()
			end
			assert.equal(51, #told "ran")
			assert.same({}, cluster:logs { level = "warn" })
		end)
	end)

	describe("with a finalizer", function()
		local FINALIZER = "example.com/keys"

		local function start(cleanup)
			load(([[local tries = 0
			k8s.controller { name = "keys", watch = maps, finalizer = "example.com/keys",
				reconcile = function(request) tell("ran", { name = request.name, finalizers = table.concat(maps:get(request).metadata.finalizers or {}, ",") }) end,
				cleanup = function(object, context) tell("cleaned", { name = object.metadata.name }) %s end }]]):format(cleanup or ""))
		end

		it("has it on the object before the first reconcile, keeps others' and stores nothing else", function()
			local before = assert(cluster:create(map("a", { finalizers = { "example.com/other" } })))
			start()
			assert.equal("example.com/other," .. FINALIZER, told("ran", "finalizers")[1])
			local object = assert(cluster:get(map "a"))
			assert.same({ "example.com/other", FINALIZER }, object.metadata.finalizers)
			assert.same(before.metadata.annotations, object.metadata.annotations)
		end)

		it("runs nothing for an object that was gone before it got it", function()
			assert(cluster:create(map "a"))
			cluster:fault { verb = "patch", name = "a", action = "status", code = 404, reason = "NotFound" }
			start()
			assert.same({}, told "ran")
		end)

		it("takes it off when cleanup has succeeded, and then the object goes", function()
			assert(cluster:create(map "a"))
			start()
			assert(cluster:delete(map "a"))
			cluster:settle()
			assert.same({ "a" }, told "cleaned")
			assert.equal("NotFound", select(2, cluster:get(map "a")).reason)
			local written = #cluster:requests { verb = "patch" }
			cluster:advance(60)
			assert.equal(written, #cluster:requests { verb = "patch" })
		end)

		it("keeps it while cleanup fails or asks for more time", function()
			assert(cluster:create(map "a"))
			start [[tries = tries + 1
				if tries == 1 then error "not yet" elseif tries == 2 then return { requeue_after = 10 } end]]
			assert(cluster:delete(map "a"))
			cluster:advance(5)
			assert.equal(2, #told "cleaned")
			assert.same({ FINALIZER }, assert(cluster:get(map "a")).metadata.finalizers)
			cluster:advance(10)
			assert.equal(3, #told "cleaned")
			assert.equal("NotFound", select(2, cluster:get(map "a")).reason)
		end)

		it("takes it off an object that cleanup has written to, at once", function()
			assert(cluster:create(map("a", { finalizers = { "example.com/other" } })))
			start [[tries = tries + 1 assert(k8s.patch(object, { metadata = { annotations = { tries = tostring(tries) } } })) object.metadata = nil]]
			assert(cluster:delete(map "a"))
			cluster:settle()
			assert.same({ "a" }, told "cleaned")
			assert.same({ "example.com/other" }, assert(cluster:get(map "a")).metadata.finalizers)
		end)

		it("leaves alone what is going without it", function()
			assert(cluster:create(map("a", { finalizers = { "example.com/other" } })))
			assert(cluster:delete(map "a"))
			start()
			assert.same({}, told "cleaned")
			assert.same({}, told "ran")
			assert.same({ "example.com/other" }, assert(cluster:get(map "a")).metadata.finalizers)
		end)

		it("cleans up although a function of the script's refuses all events", function()
			assert(cluster:create(map "a"))
			load [[k8s.controller { name = "keys", watch = { maps, when = function(_, event) return event.initial end }, finalizer = "example.com/keys",
				reconcile = function() end, cleanup = function(object) tell("cleaned", { name = object.metadata.name }) end }]]
			assert(cluster:delete(map "a"))
			cluster:settle()
			assert.same({ "a" }, told "cleaned")
		end)
	end)

	describe("registered wrongly", function()
		local function fails(options, message)
			local ok, problem = pcall(load, ([[
				local some = k8s.informer { apiVersion = "v1", kind = "Secret", label_selector = "app=web" }
				local one = k8s.informer { apiVersion = "v1", kind = "Secret", field_selector = "metadata.name=one" }
				local function f() end
				k8s.controller { %s }]]):format(options))
			assert.is_false(ok, options)
			assert.matches(message, tostring(problem), 1, true)
			assert.matches("init.lua:7", tostring(problem), 1, true)
		end

		it("is an error at the script's own line", function()
			fails("watch = maps, reconcile = f", "name must be a string, not nothing")
			fails("name = 'a b', watch = maps, reconcile = f", "name is 1 to 63 of a-z")
			fails("name = 'a', reconcile = f", "watch is missing")
			fails("name = 'a', watch = {}, reconcile = f", "watch must be an informer")
			fails("name = 'a', watch = maps", "reconcile must be a function, not nothing")
			fails("name = 'a', watch = maps, reconcile = f, worker = 2", "unknown option 'worker', did you mean 'workers'?")
			fails("name = 'a', watch = maps, reconcile = f, workers = 0", "workers must be a number from 1 on")
			fails("name = 'a', watch = { maps, filter = f }, reconcile = f", "watch has no 'filter'")
			fails("name = 'a', watch = maps, owns = { f }, reconcile = f", "owns[1] must be an informer")
			fails("name = 'a', watch = maps, owns = { one = some }, reconcile = f", "owns is a list of informers; it has a 'one'")
			fails("name = 'a', watch = maps, owns = { nil, some }, reconcile = f", "owns[1] must be an informer")
			fails("name = 'a', watch = { maps, when = { test = 5 } }, reconcile = f", "watch's when.test must be a function, not a number")
			fails("name = 'a', watch = maps, map = { [some] = 1 }, reconcile = f", "must be a function")
			fails("name = 'a', watch = maps, rate_limit = { qps = 1 }, reconcile = f", "qps and burst together")
			fails("name = 'a', watch = maps, reconcile = f, cleanup = f", "cleanup needs a finalizer")
			fails("name = 'a', watch = maps, reconcile = f, cleanup = f, finalizer = 'plain'", "a finalizer is a domain and a name")
			fails("name = 'a', watch = some, reconcile = f, cleanup = f, finalizer = 'example.com/a'", "\"app=web\", which an object could leave")
			for _, lossy in ipairs { "drop = { 'metadata.finalizers' }", "drop = { 'metadata.deletionTimestamp' }", "keep = { 'spec', 'metadata.finalizers' }",
				"transform = f" } do
				fails("name = 'a', watch = k8s.informer { apiVersion = 'v1', kind = 'Secret', " .. lossy .. " }, reconcile = f, cleanup = f, finalizer = 'example.com/a'",
					"a finalizer needs metadata.finalizers, deletionTimestamp and resourceVersion in the cache")
			end
			fails("name = 'a', watch = maps, reconcile = f } k8s.controller { name = 'a', watch = maps, reconcile = f", "there is a controller 'a' already")
		end)

		it("takes a finalizer with a selector that no object can leave", function()
			load [[
				local one = k8s.informer { apiVersion = "v1", kind = "Secret", field_selector = "metadata.name=one" }
				k8s.controller { name = "a", watch = one, reconcile = print, cleanup = print, finalizer = "example.com/a" }]]
		end)

		it("takes a finalizer with a cache that holds only what that needs", function()
			load [[
				local some = k8s.informer { apiVersion = "v1", kind = "Secret", keep = { "metadata" } }
				local heads = k8s.informer { apiVersion = "v1", kind = "Secret", metadata_only = true }
				k8s.controller { name = "a", watch = some, reconcile = print, cleanup = print, finalizer = "example.com/a" }
				k8s.controller { name = "b", watch = heads, reconcile = print, cleanup = print, finalizer = "example.com/b" }]]
		end)
	end)
end)
