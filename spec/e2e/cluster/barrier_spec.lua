-- The barrier against a real API server: nothing is handled too early, and whoever asks is told who is late and why.
local cjson = require "cjson"
local cluster = require "support.cluster"
local host = require "support.host"
local process = require "support.process"

local before_each, it = cluster.when_up(before_each, it)

local function config_map(namespace, name)
	return { "POST", ("/api/v1/namespaces/%s/configmaps"):format(namespace), { metadata = { name = name } } }
end

local function rule(plural)
	return { apiGroups = { "" }, resources = { plural }, verbs = { "list", "watch" } }
end

local function contains(text, part)
	assert(text:find(part, 1, true), ("no %q in:\n%s"):format(part, text))
end

describe("the barrier", function()
	it("calls no handler of any script before all informers of all scripts have synced", function()
		local user, kubeconfig = cluster.need_user()
		local namespace = cluster.namespace()
		cluster.send { config_map(namespace, "early-1"), config_map(namespace, "early-2") }
		cluster.grant(user, { rule "configmaps" })
		local run = host.start {
			kubeconfig = kubeconfig, pages = true, set = { namespace = namespace },
			scripts = {
				settings = [[
					local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = k8s.config.namespace }
					maps:add_event_handler { add = function(map, event) print("ConfigMap", map.metadata.name, event.initial) end }
				]],
				accounts = [[
					local accounts = k8s.informer { apiVersion = "v1", kind = "ServiceAccount", namespace = k8s.config.namespace }
					accounts:add_event_handler { add = function(account, event) print("ServiceAccount", account.metadata.name, event.initial) end }
					k8s.on_synced(function() print("synced", accounts:has_synced()) end)
				]],
			},
		}

		local late = run:log_line "waiting for 1 of 2 caches"
		contains(late, "v1/ServiceAccount")
		contains(late, "forbidden")
		local status, page = run:page "/readyz?verbose"
		assert.equal(503, status)
		contains(page, ("[+]v1/ConfigMap %s streaming, 3 objects"):format(namespace))
		contains(page, ("[-]v1/ServiceAccount %s forbidden"):format(namespace))
		contains(page, ("(missing: list, watch on serviceaccounts in namespace %s)"):format(namespace))

		local quiet_until = process.now() + 1
		while process.now() < quiet_until do
			run.child:pump(0.1)
		end
		assert.equal("", run.child:stdout())

		cluster.grant(user, { rule "serviceaccounts" })
		local seen = {}
		for i = 1, 5 do
			seen[i] = run:line(40)
		end
		table.sort(seen)
		assert.same({
			"ConfigMap\tearly-1\ttrue", "ConfigMap\tearly-2\ttrue", "ConfigMap\tkube-root-ca.crt\ttrue",
			"ServiceAccount\tdefault\ttrue", "synced\ttrue",
		}, seen)
		assert.equal(200, (run:page "/readyz"))
		contains(run:await_page("/readyz?verbose", 200), "[+]v1/ServiceAccount")

		cluster.send { config_map(namespace, "late") }
		assert.equal("ConfigMap\tlate\tfalse", run:line())
		run:stop()
	end)

	it("ends the program with exit code 3 and the table when there is no progress for --sync-timeout", function()
		local user, kubeconfig = cluster.need_user()
		cluster.grant(user, { rule "configmaps" })
		local run = host.start {
			kubeconfig = kubeconfig, flags = { "--sync-timeout", "3s" },
			script = [[
				k8s.informer { apiVersion = "v1", kind = "ConfigMap" }:add_event_handler { add = function() print "too early" end }
				k8s.informer { apiVersion = "v1", kind = "Secret" }
			]],
		}
		assert.equal(3, run:wait())
		assert.equal("", run.child:stdout())
		local log = run.child:stderr()
		contains(log, "no progress for 3 s")
		local late = log:match "%[%-%]v1/Secret[^\n]*"
		contains(late, "forbidden")
		contains(late, "(missing: list, watch on secrets)")
		contains(log, "[+]v1/ConfigMap")
	end)
end)

-- A script that starts a factory of its own and says what each wait gives.
local waiting = [[
	k8s.main(function()
		local factory = k8s.factory { namespace = k8s.config.namespace }
		factory:informer { apiVersion = k8s.config.group or "v1", kind = k8s.config.kind }
		factory:informer { apiVersion = "v1", kind = "ConfigMap" }
		factory:start()
		print(k8s.json.encode(factory:wait_for_cache_sync { timeout = 2 }))
		print(k8s.json.encode(factory:wait_for_cache_sync { timeout = 60 }))
	end)
]]

describe("wait_for_cache_sync", function()
	local namespace

	before_each(function()
		namespace = cluster.namespace()
	end)

	-- The rows of ConfigMap, which has synced, and of the late one.
	local function check(result, late_kind)
		assert.is_false(result.synced)
		assert.equal(2, #result.informers)
		local late, other = unpack(result.informers)
		assert.same({ late_kind, namespace, false, 0 }, { late.kind, late.namespace, late.synced, late.objects })
		assert.same({ "v1", "ConfigMap", namespace, true, 1, 0 },
			{ other.apiVersion, other.kind, other.namespace, other.synced, other.objects, other.attempts })
		assert.is_nil(result.err:find("ConfigMap", 1, true))
		contains(result.err, late_kind)
		assert(late.attempts >= 1)
		contains(result.err, late.message)
		return late
	end

	it("names a forbidden kind, its missing rule, and syncs once it is granted", function()
		local user, kubeconfig = cluster.need_user()
		cluster.grant(user, { rule "configmaps" })
		local run = host.start { kubeconfig = kubeconfig, script = waiting, set = { namespace = namespace, kind = "Secret" } }
		local late = check(cjson.decode(run:line()), "Secret")
		assert.equal("v1", late.apiVersion)
		assert.equal(403, late.status)
		contains(late.state, "forbidden")
		contains(late.message, ('User "%s" cannot list resource "secrets"'):format(user))
		contains(late.message, ("(missing: list, watch on secrets in namespace %s)"):format(namespace))

		cluster.grant(user, { rule "secrets" })
		local result = cjson.decode(run:line(40))
		assert.is_true(result.synced)
		assert.is_nil(result.err)
		assert.equal("", result.informers[1].message)
		run:stop()
	end)

	it("names an absent kind, and syncs soon after its CRD has come", function()
		local group = cluster.random_name() .. ".example.com"
		local run = host.start {
			kubeconfig = cluster.kubeconfig(), script = waiting,
			set = { namespace = namespace, kind = "Widget", group = group .. "/v1" },
		}
		local late = check(cjson.decode(run:line()), "Widget")
		assert.equal(group .. "/v1", late.apiVersion)
		contains(late.state, "no such kind")
		contains(late.message, group)

		cluster.define(group)
		local result = cjson.decode(run:line(40))
		assert.is_true(result.synced)
		assert.equal("Widget", result.informers[1].kind)
		run:stop()
	end)
end)

describe("a kind that disappears", function()
	it("takes its objects along, and is watched again when it has come back", function()
		local group = cluster.random_name() .. ".example.com"
		local version, path = cluster.define(group)
		local function create(name)
			local status = cluster.curl("POST", path .. "/namespaces/default/widgets", { apiVersion = version, kind = "Widget", metadata = { name = name } })
			assert.equal(201, status)
		end
		create "old"
		local run = host.start {
			kubeconfig = cluster.kubeconfig(), pages = true, set = { version = version },
			script = [[
				local widgets = k8s.informer { apiVersion = k8s.config.version, kind = "Widget" }
				local function log(widget, event) print(event.type, widget.metadata.name, widgets:count()) end
				widgets:add_event_handler { add = log, delete = log }
			]],
		}
		assert.equal("add\told\t1", run:line())
		local crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets." .. group
		assert.equal(200, (cluster.curl("DELETE", crd)))
		assert.equal("delete\told\t0", run:line())
		cluster.await(60, "no such kind", function()
			return run:status().informers[1].state:find "no such kind"
		end)
		assert.equal(200, (run:page "/readyz"))

		cluster.await(20, "the end of the old one", function()
			return cluster.curl("GET", crd) == 404
		end)
		cluster.define(group)
		create "new"
		assert.equal("add\tnew\t1", run:line(40))
		run:stop()
	end)
end)
