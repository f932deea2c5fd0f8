-- A testing cluster: what specs do with it, and how long it lives.
local cli = require "support.cli"
local files = require "support.files"
local k8s = require "perilune"
local testing = require "perilune.testing"

local function map(name, data)
	return { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "default", name = name }, data = data }
end

local function script(text)
	return files.write(files.folder() .. "/script.lua", 'local k8s = require "perilune"\n' .. text)
end

-- Notes each event of a config map in the map "seen".
local NOTES = [[
local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = "default", label_selector = "!seen" }
maps:add_event_handler {
	add = function(map)
		assert(k8s.patch({ apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = "seen" }, { data = { [map.metadata.name] = "add" } }))
	end,
}
]]

describe("a testing cluster", function()
	it("may be closed by one coroutine while another moves its time, which then opens the next", function()
		local first, closed = testing.cluster(), false
		k8s.every(1, function()
			if not closed then
				closed = true
				first:close()
			end
		end)
		local ok, err = pcall(first.advance, first, 5)
		assert.is_false(ok)
		assert.matches("the cluster was closed", err)
		local second = testing.cluster()
		second:advance(5)
		assert(second:create(map("a", {})))
	end)

	it("runs a script against objects of the spec", function()
		local cluster = testing.cluster()
		local seen = map "seen"
		seen.metadata.labels = { seen = "yes" }
		assert(cluster:create(seen))
		assert(cluster:create(map "a"))
		cluster:load(script(NOTES))
		cluster:settle()
		assert.same({ a = "add" }, assert(cluster:get(seen)).data)
		assert(cluster:create(map "b"))
		cluster:settle()
		assert.same({ a = "add", b = "add" }, assert(cluster:get(seen)).data)
		assert.equal(2, #cluster:requests { verb = "patch", kind = "ConfigMap" })
	end)

	it("gives the client's errors", function()
		local cluster = testing.cluster()
		local object, err = cluster:get(map "a")
		assert.is_nil(object)
		assert.same({ 404, "NotFound", 'configmaps "a" not found' }, { err.code, err.reason, err.message })
		assert.equal("NoKind", select(2, cluster:get { apiVersion = "v1", kind = "Nothing", name = "a" }).reason)
		assert.equal("BadRequest", select(2, cluster:get { apiVersion = "v1", kind = "ConfigMap", name = "a" }).reason)
		local invalid = map "B"
		err = select(2, cluster:create(invalid))
		assert.equal("Invalid", err.reason)
		assert.equal("metadata.name", err.causes[1].field)
	end)

	it("takes all kinds of writes", function()
		local cluster = testing.cluster { manifests = "examples/label-sync/manifests/demo.yaml" }
		local one = assert(cluster:apply(map("a", { a = "1", b = "1" })))
		assert.same({ a = "2", b = "1" }, assert(cluster:patch(one, { data = { a = "2" } })).data)
		assert.same({ b = "1" }, assert(cluster:patch(one, { { op = "remove", path = "/data/a" } }, { type = "json" })).data)
		one = assert(cluster:get(one))
		one.data.c = "1"
		assert(cluster:update(one))
		assert.equal("Conflict", select(2, cluster:update(one)).reason)
		assert(cluster:delete(one))
		assert.same({}, cluster:list { apiVersion = "v1", kind = "ConfigMap", namespace = "default" })
		assert.equal(1, #assert(cluster:list { apiVersion = "v1", kind = "Namespace", field_selector = "metadata.name=label-sync-demo" }))
		assert.same({}, cluster:requests { verb = "create" })
	end)

	it("knows a custom kind by its definition, and from then on by what was asked for", function()
		local cluster = testing.cluster()
		local definition = assert(cluster:create {
			apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition", metadata = { name = "wombats.example.com" },
			spec = {
				group = "example.com", scope = "Namespaced", names = { kind = "Wombat", plural = "wombats" },
				versions = { {
					name = "v1", served = true, storage = true,
					schema = { openAPIV3Schema = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } },
				} },
			},
		})
		cluster:fault { resource = "wombats", verb = "create", action = "reset" }
		cluster:load(script 'k8s.informer { apiVersion = "example.com/v1", kind = "Wombat" }')
		cluster:settle()
		local asked = #cluster:requests { kind = "Wombat" }
		assert.is_true(asked > 0)
		assert(cluster:delete(definition))
		cluster:settle()
		assert.is_true(#cluster:requests { resource = "wombats" } >= asked)
	end)

	it("gives a script its settings", function()
		local cluster = testing.cluster()
		assert(cluster:create(map "seen"))
		cluster:load(script [[
			k8s.main(function()
				assert(k8s.patch({ apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = "seen" },
					{ data = { size = k8s.config.size, factory = tostring(k8s.config.factory) } }))
			end)
		]], { config = { size = 3 } })
		cluster:settle()
		assert.same({ size = "3", factory = "nil" }, cluster:get(map "seen").data)
	end)

	it("shows what was logged, and only errors go to stderr", function()
		local cluster = testing.cluster()
		cluster:load(script 'k8s.main(function() k8s.log.info("hello", { size = 3 }) k8s.log.warn("bye") end)')
		cluster:settle()
		local lines = cluster:logs { script = "script" }
		assert.same({ "hello", "bye" }, { lines[1].msg, lines[2].msg })
		assert.equal("3", lines[1].size)
		assert.same({ lines[2] }, cluster:logs { level = "warn" })
		assert.same({ lines[1] }, cluster:logs { size = "3" })
		assert.same({}, cluster:logs { pods = "3" })
	end)

	it("ends a program as a kill does, and runs it again", function()
		local cluster = testing.cluster()
		local seen = map "seen"
		seen.metadata.labels = { seen = "yes" }
		assert(cluster:create(seen))
		local path = script(NOTES)
		local program = cluster:load(path)
		cluster:settle()
		program:kill()
		program:kill()
		assert(cluster:create(map "a"))
		cluster:settle()
		assert.is_nil(cluster:get(seen).data)
		program = cluster:load(path)
		cluster:settle()
		assert.same({ a = "add" }, cluster:get(seen).data)
		cluster:close()
		program:kill()
	end)

	describe("and time", function()
		local TICKS = [[
			local count = 0
			local function patch(data)
				assert(k8s.patch({ apiVersion = "v1", kind = "ConfigMap", namespace = "default", name = "seen" }, { data = data }))
			end
			k8s.every(10, function()
				count = count + 1
				patch { ticks = tostring(count), at = ("%.3f"):format(k8s.now()) }
			end)
			k8s.on_synced(function()
				k8s.sleep(25)
				patch { slept = ("%.3f"):format(k8s.now()), os = os.time() .. " " .. os.date("!%F %T") }
			end)
		]]

		it("stands still until it is moved, and then all happens at its time", function()
			local cluster = testing.cluster()
			assert(cluster:create(map "seen"))
			cluster:load(script(TICKS))
			cluster:settle()
			local start = k8s.now()
			cluster:advance(9.9)
			assert.is_nil(cluster:get(map "seen").data)
			cluster:advance(0.1)
			assert.same({ ticks = "1", at = ("%.3f"):format(start + 10) }, cluster:get(map "seen").data)
			cluster:advance(90)
			local data = cluster:get(map "seen").data
			assert.equal("10", data.ticks)
			assert.equal(("%.3f"):format(start + 25), data.slept)
			assert.equal(("%d %s"):format(start + 25, os.date("!%F %T", start + 25)), data.os)
			assert.equal(("%.3f"):format(start + 100), ("%.3f"):format(k8s.now()))
		end)

		it("goes on where it is closed, and the wall is right again", function()
			local before = os.time()
			local cluster = testing.cluster()
			cluster:advance(86400)
			cluster:close()
			assert.is_true(k8s.now() - before < 3600)
			k8s.sleep(0.001)
		end)

		it("is not slept away by a spec", function()
			local cluster = testing.cluster()
			assert.has_error(function() k8s.sleep(5) end,
				"time stands still while a testing cluster is open: cluster:advance(5) moves it")
			cluster:close()
		end)

		it("says what does not come to rest", function()
			local cluster = testing.cluster()
			cluster:load(script "k8s.main(function() while true do k8s.sleep(0) end end)")
			assert.error_matches(function() cluster:settle { timeout = 0.2 } end,
				"^cluster:settle: after 0.2 s there is still something to do at once")
		end)
	end)

	describe("misused", function()
		local cluster

		before_each(function()
			cluster = testing.cluster()
		end)

		-- The message, which must name the line of the function's first statement.
		local function misuse(fn)
			local info = debug.getinfo(fn, "S")
			local ok, err = pcall(fn)
			assert.is_false(ok)
			local place = ("%s:%d: "):format(info.short_src, info.linedefined)
			assert.equal(place, tostring(err):sub(1, #place))
			return tostring(err):sub(#place + 1)
		end

		it("says so at the spec's line", function()
			for message, fn in pairs {
				["a testing cluster has no 'setle', did you mean 'settle'?"] = function() cluster:setle() end,
				["cluster:fault: unknown action 'expier', did you mean 'expire'?"] = function() cluster:fault { action = "expier" } end,
				["cluster:fault: unknown verb 'wach', did you mean 'watch'?"] = function() cluster:fault { verb = "wach", action = "cut" } end,
				["cluster:fault: unknown option 'verbs', did you mean 'verb'?"] = function() cluster:fault { verbs = "list", action = "cut" } end,
				["cluster:advance takes seconds, from 0 on, not -1"] = function() cluster:advance(-1) end,
				["cluster:advance takes seconds, from 0 on, not nil"] = function() cluster:advance() end,
				["cluster:settle: unknown option 'timout', did you mean 'timeout'?"] = function() cluster:settle { timout = 1 } end,
				["cluster:requests: unknown option 'verbs', did you mean 'verb'?"] = function() cluster:requests { verbs = "list" } end,
				["cluster:requests: unknown verb 'pach', did you mean 'patch'?"] = function() cluster:requests { verb = "pach" } end,
				["cluster:requests: unknown method 'patch', did you mean 'PATCH'?"] = function() cluster:requests { method = "patch" } end,
				["cluster:requests: 'name' must be a string, not a number"] = function() cluster:requests { name = 1 } end,
				["cluster:requests: unknown resource 'pod', did you mean 'pods'?"] = function() cluster:requests { resource = "pod" } end,
				["cluster:requests: unknown kind 'ingresses', did you mean 'Ingress'?"] = function() cluster:requests { kind = "ingresses" } end,
				["cluster:requests: unknown kind 'Wombat': a custom one is known once its definition is there"] =
					function() cluster:requests { kind = "Wombat" } end,
				["cluster:logs: no line has a field 'lvl', did you mean 'level'?"] = function() cluster:logs { lvl = "warn" } end,
				["cluster:logs: no line has a field 'scrip', did you mean 'script'?"] = function() cluster:logs { scrip = "x" } end,
				["cluster:logs: unknown level 'warning', did you mean 'warn'?"] = function() cluster:logs { level = "warning" } end,
				["cluster:logs: 'size' must be a string, not a number"] = function() cluster:logs { size = 3 } end,
				['cluster:logs: takes a table, such as { level = "warn" }'] = function() cluster:logs "warn" end,
				["cluster:fault: action 'status' needs a code, such as code = 500"] = function() cluster:fault { action = "status" } end,
				["cluster:fault: unknown resource 'Pod', did you mean 'pods'?"] = function() cluster:fault { resource = "Pod", action = "cut" } end,
				['cluster:fault: only a list has pages, no watch: leave out page, or write verb = "list"'] =
					function() cluster:fault { verb = "watch", page = 2, action = "expire" } end,
				["cluster:load: unknown option 'settings'"] = function() cluster:load("x", { settings = {} }) end,
				["cluster:load: no/such.lua: No such file or directory"] = function() cluster:load "no/such.lua" end,
				["cluster:get: name is missing"] = function() cluster:get { apiVersion = "v1", kind = "Pod" } end,
				["cluster:create: unknown option 'dryrun', did you mean 'dry_run'?"] = function() cluster:create(map "a", { dryrun = true }) end,
				["this is a method of a cluster: call it with a colon, such as cluster:get()"] = function() cluster.get(map "a") end,
				["cluster:apply: apiVersion is missing"] = function() cluster:apply {} end,
				["cluster:apply: name is missing"] = function() cluster:apply { apiVersion = "v1", kind = "Pod" } end,
			} do
				assert.equal(message, misuse(fn))
			end
			cluster:close()
			cluster:close()
			assert.equal("this cluster is closed", misuse(function() cluster:settle() end))
			assert.equal("cluster: unknown option 'manifest', did you mean 'manifests'?", misuse(function() testing.cluster { manifest = "x" } end))
			local message = misuse(function() testing.cluster { manifests = "/no/where" } end)
			assert.truthy(message:find("cluster: --manifests: /no/where: No such file or directory", 1, true), message)
		end)

		it("says why a script does not load", function()
			local path = script "k8s.informer { apiVersion = 'v1' }"
			assert.error_matches(function() cluster:load(path) end, "cluster:load: .*script.lua:2: ")
		end)
	end)

	describe("left open", function()
		it("in a test", function()
			testing.cluster():load(script "")
		end)

		it("is closed with it", function()
			testing.cluster():close()
		end)

		describe("by a before_each", function()
			local cluster, before

			before_each(function()
				before = cluster
				cluster = testing.cluster()
			end)

			after_each(function()
				cluster:settle()
			end)

			for i = 1, 2 do
				it("lasts to the next, " .. i, function()
					cluster:settle()
					if before then
						assert.has_error(function() before:settle() end, "this cluster is closed")
					end
				end)
			end
		end)

		it("of a before_each that fails does not stand in the way of the next test", function()
			local path = files.write(files.folder() .. "/once_spec.lua", [[
				local begun = false
				before_each(function()
					require("perilune.testing").cluster()
					local again = begun
					begun = true
					assert(again, "not yet")
				end)
				it("first", function() end)
				it("second", function() end)
			]])
			local code, stdout = cli.run { "test", "-o", "plainTerminal", path }
			assert.equal(1, code)
			assert.matches("1 success / 0 failures / 1 error", stdout, 1, true)
		end)

		describe("by a describe", function()
			local cluster = testing.cluster()

			it("is there for its tests", function()
				cluster:settle()
				assert.error_matches(testing.cluster, "a testing cluster is open already, since spec/testing/cluster_spec.lua:%d+: ")
			end)

			it("and for the next", function()
				cluster:settle()
			end)
		end)

		it("is closed with that", function()
			testing.cluster():close()
		end)
	end)

	it("can be closed while requests are under way", function()
		local path = script [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap" }
			local function touch(map) k8s.patch(map, { data = { at = tostring(map.data.at + 1) } }) end
			maps:add_event_handler { add = touch, update = touch }
		]]
		for i = 1, 15 do
			local cluster = testing.cluster()
			assert(cluster:create(map("a", { at = "0" })))
			cluster:load(path)
			assert.error_matches(function() cluster:settle { timeout = i * 0.004 } end, "cluster:settle: after")
			cluster:close()
		end
	end)

	it("shows a factory that is given up before it has synced: nobody waits for it any more", function()
		local cluster = testing.cluster()
		cluster:load(script [[
			k8s.main(function()
				local factory = k8s.factory { namespace = "shop" }
				factory:informer { apiVersion = "example.com/v1", kind = "Absent" }
				factory:informer { apiVersion = "v1", kind = "Secret" }
				local early = factory:wait_for_cache_sync()
				k8s.log.info("early", { synced = tostring(early.synced), informers = #early.informers })
				factory:start()
				k8s.log.info("late", { synced = tostring(factory:wait_for_cache_sync { timeout = 5 }.synced) })
				factory:shutdown()
			end)
			k8s.on_synced(function() k8s.log.info "open" end)
		]])
		cluster:advance(10)
		local early = cluster:logs { msg = "early" }[1]
		assert.same({ "true", "0" }, { early.synced, tostring(early.informers) })
		assert.equal("false", cluster:logs({ msg = "late" })[1].synced)
		assert.equal(1, #cluster:logs { msg = "open" })
	end)

	it("leaves no descriptor open", function()
		local CYCLES = 30
		local function descriptors()
			collectgarbage()
			local pipe = io.popen "ls /proc/$PPID/fd"
			local found = select(2, pipe:read("a"):gsub("\n", ""))
			pipe:close()
			return found
		end
		local path = script(NOTES)
		local first, last
		for _ = 1, CYCLES do
			local cluster = testing.cluster()
			cluster:load(path)
			cluster:settle()
			last = descriptors()
			first = first or last
			cluster:close()
		end
		-- A connection more or less may be open at that moment; one for each cluster is a leak.
		assert(last < first + CYCLES / 2, ("%d are open, and were %d"):format(last, first))
	end)
end)
