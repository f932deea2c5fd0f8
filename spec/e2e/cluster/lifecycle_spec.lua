-- From start to stop against a real API server: what runs when, what a signal leaves time for, and what comes out on which stream.
local cjson = require "cjson"
local cluster = require "support.cluster"
local host = require "support.host"
local process = require "support.process"

local before_each, it = cluster.when_up(before_each, it)

local function contains(text, part)
	assert(text:find(part, 1, true), ("no %q in:\n%s"):format(part, text))
end

describe("perilune run", function()
	local namespace

	before_each(function()
		namespace = cluster.namespace()
	end)

	local function start(script, options)
		options = options or {}
		options.script, options.kubeconfig = script, cluster.kubeconfig()
		options.set = options.set or {}
		options.set.namespace = namespace
		return host.start(options)
	end

	local function maps_path(name)
		return "/api/v1/namespaces/" .. namespace .. "/configmaps" .. (name and "/" .. name or "")
	end

	-- A handler that sleeps, and one line for each step on the way to the end.
	local sleeper = [[
		k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = k8s.config.namespace }:add_event_handler {
			add = function(map) print("begin", map.metadata.name) k8s.sleep(tonumber(k8s.config.seconds)) print "finished" end,
		}
		k8s.on_shutdown(function()
			print "shutdown"
			assert(k8s.create { apiVersion = "v1", kind = "Secret", metadata = { name = "bye", namespace = k8s.config.namespace } })
			print "shut down"
		end)
	]]

	for _, signal in ipairs { "TERM", "INT" } do
		it("lets a running handler and on_shutdown finish at SIG" .. signal .. ", and begins nothing new", function()
			cluster.send { { "POST", maps_path(), { metadata = { name = "second" } } } }
			local run = start(sleeper, { set = { seconds = 1 } })
			assert.truthy(run:line():find "^begin")
			run.child:kill(signal)
			assert.equal("shutdown", run:line())
			assert.equal("shut down", run:line())
			assert.equal("finished", run:line())
			assert.equal(0, run:wait())
			assert.equal(1, select(2, run.child:stdout():gsub("begin", "")))
			contains(run.child:stderr(), "stopping")
			assert.equal(200, (cluster.curl("GET", "/api/v1/namespaces/" .. namespace .. "/secrets/bye")))
		end)
	end

	it("cuts a handler off when --grace-period is over, and says so", function()
		local run = start(sleeper, { set = { seconds = 60 }, flags = { "--grace-period", "1s" } })
		assert.equal("begin\tkube-root-ca.crt", run:line())
		local at = process.now()
		run.child:kill "TERM"
		assert.equal(0, run:wait(15))
		assert(process.now() - at >= 1, "it did not wait")
		assert.is_nil(run.child:stdout():find("finished", 1, true))
		contains(run.child:stdout(), "shut down\n")
		contains(run.child:stderr(), "still running after 1 s")
	end)

	it("ends at once at a second SIGTERM", function()
		local run = start(sleeper, { set = { seconds = 60 } })
		assert.equal("begin\tkube-root-ca.crt", run:line())
		run.child:kill "TERM"
		assert.equal("shutdown", run:line())
		-- Those that come within 0.3 s of each other are one.
		cluster.await(5, "the end", function()
			run.child:kill "TERM"
			return run.child:has_ended()
		end)
		assert.equal(1, run:wait())
		contains(run.child:stderr(), "by a second signal")
	end)

	it("stops while its caches fill", function()
		local run = start('k8s.informer { apiVersion = "example.com/v1", kind = "Nothing" } k8s.on_shutdown(function() print "shutdown" end)')
		run:log_line "waiting for 1 of 1 caches"
		run:stop()
		assert.equal("shutdown", run:line())
	end)

	it("runs main before the barrier, on_synced after it, and every from then on", function()
		local run = start [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = k8s.config.namespace }
			local ticks = 0
			k8s.every(0.05, function()
				ticks = ticks + 1
				if ticks <= 3 then print("tick", ticks, maps:has_synced()) end
				k8s.sleep(0.02)
			end)
			k8s.on_synced(function() print("on_synced", maps:has_synced()) end)
			k8s.main(function()
				print("main", maps:has_synced())
				local factory = k8s.factory { namespace = k8s.config.namespace }
				local accounts = factory:informer { apiVersion = "v1", kind = "ServiceAccount" }
				accounts:add_event_handler { add = function(account, event) print("account", account.metadata.name, event.initial) end }
				factory:start()
				local result = factory:wait_for_cache_sync { timeout = 20 }
				print("waited", result.synced, #result.informers, accounts:count())
			end)
		]]
		assert.equal("main\tfalse", run:line())
		local lines, seen = {}, {}
		for i = 1, 6 do
			lines[i] = run:line()
			seen[lines[i]] = i
		end
		assert.truthy(seen["waited\ttrue\t1\t1"], table.concat(lines, "; "))
		assert.truthy(seen["account\tdefault\ttrue"])
		assert.truthy(seen["on_synced\ttrue"] < seen["tick\t1\ttrue"])
		assert.truthy(seen["tick\t1\ttrue"] < seen["tick\t2\ttrue"])
		assert.truthy(seen["tick\t2\ttrue"] < seen["tick\t3\ttrue"])
		run:stop()
	end)

	it("gives --set to the script as texts", function()
		local run = start([[k8s.main(function() print(k8s.config.a, k8s.config.b, k8s.config.none, type(k8s.config.number)) end)]],
			{ set = { a = "b=c", b = "", number = "7" } })
		assert.equal("b=c\t\tnil\tstring", run:line())
		run:stop()
	end)

	it("flushes what is printed line by line", function()
		local run = start [[k8s.main(function() print "first" k8s.sleep(60) end)]]
		assert.equal("first", run:line())
		assert.is_false(run.child:has_ended())
		run.child:kill "KILL"
	end)

	it("logs JSON lines with --log-format json", function()
		local run = start([[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = k8s.config.namespace }
			maps:add_event_handler { add = function(map) error "line one\nline two" end }
			k8s.on_synced(function()
				k8s.log.info("said \"this\"", { controller = "c", attempt = 3, text = "ä\n\1" })
				k8s.log.debug "not shown"
				print "done"
			end)
			k8s.informer { apiVersion = "v1", kind = "Secret", namespace = k8s.config.namespace }
		]], { flags = { "--log-format", "json" } })
		assert.equal("done", run:line())
		run:log_line "add handler failed"
		run:stop()
		local known = {}
		for _, key in ipairs {
			"time", "level", "msg", "script", "informer", "controller", "kind", "namespace", "name", "attempt", "error", "file",
			"server", "config", "context", "text",
		} do
			known[key] = true
		end
		local by_message = {}
		for line in run.child:stderr():gmatch "[^\n]+" do
			local entry = cjson.decode(line)
			by_message[entry.msg] = entry
			assert.truthy(entry.time:find "^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ$")
			assert.truthy(({ debug = true, info = true, warn = true, error = true })[entry.level], line)
			for key in pairs(entry) do
				assert.truthy(known[key], line)
			end
		end
		local said = by_message['said "this"']
		assert.same({ "info", "script", "c", "3", "ä\n\1" }, { said.level, said.script, said.controller, said.attempt, said.text })
		local failed = by_message["add handler failed"]
		assert.same({ "error", "script", namespace, "kube-root-ca.crt" }, { failed.level, failed.script, failed.namespace, failed.name })
		assert.truthy(failed.file:find "/script%.lua:2$", failed.file)
		contains(failed.error, "line one")
		contains(failed.informer, "v1/ConfigMap")
		assert.truthy(by_message.stopping)
	end)

	it("writes nothing with --dry-run, and caches nothing that was not written", function()
		cluster.send { { "POST", maps_path(), { metadata = { name = "there" }, data = { a = "1" } } } }
		local run = start([[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = k8s.config.namespace }
			k8s.on_synced(function()
				local function map(name) return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name, namespace = k8s.config.namespace } } end
				local created = assert(k8s.create(map "new"))
				local there = assert(k8s.get(map "there"))
				there.data.a = "2"
				local updated = assert(k8s.update(there))
				local patched = assert(k8s.patch(map "there", { data = { a = "3" } }))
				local deleted, err = k8s.delete(map "there")
				print(created.metadata.name, updated.data.a, patched.data.a, deleted ~= nil, err)
				local cached = maps:get(k8s.config.namespace, "there")
				print(maps:get(k8s.config.namespace, "new"), cached and cached.data.a)
			end)
		]], { flags = { "--dry-run" } })
		assert.equal("new\t2\t3\ttrue\tnil", run:line())
		assert.equal("nil\t1", run:line())
		run:stop()
		assert.equal(404, (cluster.curl("GET", maps_path "new")))
		local status, there = cluster.curl("GET", maps_path "there")
		assert.equal(200, status)
		assert.equal("1", there.data.a)
		assert.is_nil(there.metadata.deletionTimestamp)
	end)
end)
