-- How many requests factories make, as the API server's own audit log has it.
local cjson = require "cjson"
local cluster = require "support.cluster"
local host = require "support.host"

local second = cluster.second()
local before_each, it = second.when_up(before_each, it)

describe("a factory", function()
	local namespace, run

	before_each(function()
		namespace = second.namespace()
		second.send { { "POST", "/api/v1/namespaces/" .. namespace .. "/configmaps", { metadata = { name = "first" } } } }
	end)

	after_each(function()
		if run then
			run:stop()
			run = nil
		end
	end)

	local function start(scripts)
		run = host.start { kubeconfig = second.kubeconfig(), scripts = scripts, set = { namespace = namespace }, pages = true }
		return run
	end

	-- "list configmaps" and the like to how often it was asked; of watches only, how many have ended.
	local function requests(ended)
		local counts = {}
		for _, entry in ipairs(second.audit(namespace)) do
			local wanted = ended and entry.verb == "watch" and entry.stage == "ResponseComplete"
				or not ended and (entry.verb == "list" or entry.stage == "ResponseStarted")
			if wanted and entry.agent:find "^perilune/" then
				local name = entry.verb .. " " .. entry.resource
				counts[name] = (counts[name] or 0) + 1
			end
		end
		return counts
	end

	local function await_requests(expected, ended)
		local seen
		pcall(cluster.await, 20, "the requests", function()
			seen = requests(ended)
			return pcall(assert.same, expected, seen)
		end)
		assert.same(expected, seen)
	end

	local function await_ended(expected)
		await_requests(expected, true)
	end

	local function counts_in_status()
		local counts = {}
		for _, informer in ipairs(run:status().informers) do
			counts[informer.kind] = { informer.lists, informer.watches }
		end
		return counts
	end

	it("makes one watch, which begins with the state, for each kind, however often it is started", function()
		start { script = [[
			k8s.main(function()
				local factory = k8s.factory { namespace = k8s.config.namespace, field_selector = "metadata.name!=kube-root-ca.crt" }
				local first = factory:informer { apiVersion = "v1", kind = "ConfigMap" }
				factory:informer { apiVersion = "v1", kind = "Secret" }
				factory:start()
				factory:start()
				factory:wait_for_cache_sync()
				local again = factory:informer { apiVersion = "v1", kind = "ConfigMap" }
				factory:start()
				factory:wait_for_cache_sync()
				print("synced", first:count(), again:count(), again:has_synced())
			end)
		]] }
		assert.equal("synced\t1\t1\ttrue", run:line())
		await_requests { ["watch configmaps"] = 1, ["watch secrets"] = 1 }
		assert.same({ ConfigMap = { 1, 1 }, Secret = { 1, 1 } }, counts_in_status())
	end)

	it("shares an informer between scripts", function()
		local script = [[
			k8s.factory { namespace = k8s.config.namespace, field_selector = "metadata.name!=kube-root-ca.crt" }
				:informer { apiVersion = "v1", kind = "ConfigMap" }
				:add_event_handler { add = function(map) print("SCRIPT", map.metadata.name) end }
		]]
		start { one = script:gsub("SCRIPT", "one"), two = script:gsub("SCRIPT", "two") }
		local seen = { run:line(), run:line() }
		table.sort(seen)
		assert.same({ "one\tfirst", "two\tfirst" }, seen)
		await_requests { ["watch configmaps"] = 1 }
		assert.same({ ConfigMap = { 1, 1 } }, counts_in_status())
	end)

	it("ends its watches at shutdown, keeps those that others use, and never starts again", function()
		start { script = [[
			local shared = k8s.factory { namespace = k8s.config.namespace, field_selector = "metadata.name!=kube-root-ca.crt" }
				:informer { apiVersion = "v1", kind = "ConfigMap" }
			shared:add_event_handler { add = function(map) print("kept", map.metadata.name) end }
			k8s.on_synced(function()
				local factory = k8s.factory { namespace = k8s.config.namespace, field_selector = "metadata.name!=kube-root-ca.crt" }
				factory:informer { apiVersion = "v1", kind = "ConfigMap" }
					:add_event_handler { add = function(map) print("given up", map.metadata.name) end }
				factory:informer { apiVersion = "v1", kind = "Secret" }
				factory:start()
				print(k8s.json.encode(factory:wait_for_cache_sync { timeout = 30 }))
				k8s.sleep(0.2)
				factory:shutdown()
				factory:shutdown()
				factory:start()
				print("shut down", pcall(factory.informer, factory, { apiVersion = "v1", kind = "Secret" }))
				print(k8s.json.encode(factory:wait_for_cache_sync { timeout = 1 }))
				factory:start()
			end)
		]] }
		local lines = {}
		repeat
			lines[#lines + 1] = run:line()
		until lines[#lines]:find("^shut down")
		assert.truthy(lines[#lines]:find("the factory is shut down", 1, true), lines[#lines])
		assert.same({ synced = false, err = "the factory has been shut down", informers = {} }, cjson.decode(run:line()))
		table.remove(lines)
		table.sort(lines)
		assert.is_true(cjson.decode(table.remove(lines)).synced)
		assert.same({ "given up\tfirst", "kept\tfirst" }, lines)

		await_ended { ["watch secrets"] = 1 }
		second.send { { "POST", "/api/v1/namespaces/" .. namespace .. "/configmaps", { metadata = { name = "later" } } } }
		assert.equal("kept\tlater", run:line())
		await_requests { ["watch configmaps"] = 1, ["watch secrets"] = 1 }
		assert.same({ ConfigMap = { 1, 1 } }, counts_in_status())

		run:stop()
		run = nil
		await_ended { ["watch configmaps"] = 1, ["watch secrets"] = 1 }
	end)

	it("ends a wait that its shutdown, or the program's, leaves without hope", function()
		start { script = [[
			local function wait(name, factory)
				factory:informer { apiVersion = "v1", kind = "ConfigMap" }
				factory:informer { apiVersion = "example.com/v1", kind = "Nothing" }
				factory:start()
				print("waiting", name)
				local result = factory:wait_for_cache_sync()
				print("waited", name, result.synced, #result.informers, result.err)
				print("again", name, factory:wait_for_cache_sync().synced)
			end
			local given_up, kept
			k8s.main(function()
				given_up = k8s.factory { namespace = k8s.config.namespace }
				wait("given up", given_up)
			end)
			k8s.main(function()
				kept = k8s.factory { namespace = k8s.config.namespace }
				wait("kept", kept)
			end)
			k8s.main(function()
				k8s.sleep(0.3)
				given_up:shutdown()
			end)
		]] }
		assert.equal("waiting\tgiven up", run:line())
		assert.equal("waiting\tkept", run:line())
		assert.truthy(run:line():find "^waited\tgiven up\tfalse\t0\tthe factory has been shut down: example.com/v1/Nothing")
		assert.equal("again\tgiven up\tfalse", run:line())
		run.child:kill "TERM"
		assert.truthy(run:line(5):find "^waited\tkept\tfalse\t2\texample.com/v1/Nothing")
		assert.equal("again\tkept\tfalse", run:line(5))
		assert.equal(0, run:wait(5))
	end)
end)
