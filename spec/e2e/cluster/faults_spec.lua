-- Faults between the program and a real API server: it says what is wrong in a line, goes on trying, and works when the cause is gone.
local cluster = require "support.cluster"
local files = require "support.files"
local host = require "support.host"
local kube = require "support.kube"
local process = require "support.process"

local second = cluster.second()

local function contains(text, part)
	assert(text:find(part, 1, true), ("no %q in:\n%s"):format(part, text))
end

local function count(text, pattern)
	return select(2, text:gsub(pattern, "%0"))
end

local script = [[
	local maps = k8s.informer {
		apiVersion = "v1", kind = "ConfigMap", namespace = k8s.config.namespace, field_selector = "metadata.name!=kube-root-ca.crt",
	}
	maps:add_event_handler {
		add = function(map, event) print(event.type, map.metadata.name) end,
		delete = function(map, event) print(event.type, map.metadata.name) end,
	}
]]

local function create(where, namespace, name)
	local status = where.curl("POST", "/api/v1/namespaces/" .. namespace .. "/configmaps", { metadata = { name = name } })
	assert.equal(201, status)
end

describe("an API server that is down", function()
	local before_each, it = second.when_up(before_each, it)
	local namespace

	before_each(function()
		second.start_apiserver()
		namespace = second.namespace()
		create(second, namespace, "first")
	end)

	it("at start is waited for", function()
		second.stop_apiserver "KILL"
		local run = host.start { kubeconfig = second.kubeconfig(), script = script, set = { namespace = namespace }, pages = true }
		contains(run:log_line "looking up the kind failed, asking again in", "cannot reach " .. second.server())
		contains(run:log_line "waiting for 1 of 1 caches", "v1/ConfigMap")
		assert.equal(503, (run:page "/readyz"))
		assert.equal("", run.child:stdout())

		second.start_apiserver()
		assert.equal("add\tfirst", run:line(40))
		assert.equal(200, (run:page "/readyz"))
		run:stop()
	end)

	it("later is waited for, and the watch goes on", function()
		local run = host.start { kubeconfig = second.kubeconfig(), script = script, set = { namespace = namespace }, pages = true }
		assert.equal("add\tfirst", run:line())
		create(second, namespace, "before")
		assert.equal("add\tbefore", run:line())
		second.stop_apiserver "KILL"
		contains(run:log_line "watch failed, watching again in", "cannot reach " .. second.server())
		assert.equal(200, (run:page "/readyz"))
		local row = run:status().informers[1]
		assert.is_true(row.synced)
		assert.equal(2, row.objects)
		contains(row.message, "cannot reach")

		second.start_apiserver()
		create(second, namespace, "later")
		assert.equal("add\tlater", run:line(40))
		run:log_line "recovered: watching v1/ConfigMap"
		assert.equal("", run:status().informers[1].message)
		run:stop()
	end)
end)

describe("an API server whose certificate is of another CA", function()
	local before_each, it = cluster.when_up(before_each, it)
	local other_ca, folder

	before_each(function()
		folder = files.folder()
		other_ca = files.certificate(folder)
	end)

	local function with(list, word)
		local longer = { unpack(list) }
		longer[#longer + 1] = word
		return longer
	end

	-- Gives up after a while; its log.
	local function try(authority, wrapper)
		local config = kube.write_config(folder .. "/config", {
			server = cluster.server(), ["certificate-authority"] = authority,
		}, { token = "secret-token" })
		local run = host.start { kubeconfig = config, script = script, wrapper = wrapper, flags = { "--sync-timeout", "2s" } }
		assert.equal(3, run:wait())
		assert.equal("", run.child:stdout())
		assert.is_nil(run.child:stderr():find("secret-token", 1, true))
		return run.child:stderr()
	end

	local function check_refused(log)
		contains(log, ("the certificate of %s is not trusted"):format(cluster.server()))
		contains(log, "check certificate-authority of " .. folder .. "/config")
		assert.is_nil(log:find("Unauthorized", 1, true))
	end

	it("is refused", function()
		check_refused(try(other_ca))
	end)

	it("is refused though the system trusts that one", function()
		-- A view of the system in which the API server's CA is all that is trusted.
		local wrapper = {
			"unshare", "--user", "--map-root-user", "--mount",
			"sh", "-c", 'mount --bind "$0" /etc/ssl/certs/ca-certificates.crt && exec "$@"', cluster.ca(),
		}
		if process.run(with(wrapper, "true")) == 0 then
			check_refused(try(other_ca, wrapper))
			contains(try(nil, wrapper), "Unauthorized") -- so that view is what it should be
		else
			pending "no mount namespace can be made here"
		end
	end)
end)

describe("an API server that says no", function()
	local it = cluster.when_up(it)

	local function run_late(kubeconfig, text)
		local run = host.start { kubeconfig = kubeconfig, script = text, pages = true, flags = { "--sync-timeout", "3s" } }
		local late = run:log_line "waiting for 1 of 1 caches"
		local status, page = run:page "/readyz?verbose"
		assert.equal(503, status)
		assert.equal(3, run:wait())
		assert.equal("", run.child:stdout())
		return late, page, run.child:stderr()
	end

	it("with 401 is told so", function()
		local config = kube.write_config(files.folder() .. "/config", {
			server = cluster.server(), ["certificate-authority"] = cluster.ca(),
		}, { token = "secret-token" })
		local late, page, log = run_late(config, 'k8s.informer { apiVersion = "v1", kind = "Pod" }')
		contains(late, "v1/Pod")
		contains(late, "Unauthorized")
		contains(page, "Unauthorized")
		assert.is_nil(log:find("secret-token", 1, true))
	end)

	it("with 403 is told so, with the rule that is missing", function()
		local _, kubeconfig = cluster.need_user()
		local late, page = run_late(kubeconfig, 'k8s.informer { apiVersion = "apps/v1", kind = "Deployment" }')
		for _, text in ipairs { late, page } do
			contains(text, "apps/v1/Deployment")
			contains(text, "forbidden")
			contains(text, "(missing: list, watch on deployments.apps)")
		end
	end)

	it("with 404 is told so, with the kind that may have been meant", function()
		local late, page = run_late(cluster.kubeconfig(), 'k8s.informer { apiVersion = "v1", kind = "Deployment" }')
		for _, text in ipairs { late, page } do
			contains(text, "v1/Deployment")
			contains(text, "no such kind")
			contains(text, "kind Deployment in apps/v1")
		end
	end)
end)

describe("an error in a handler", function()
	it("is one line with file, line, traceback and the object's key, and the next event is handled", function()
		cluster.need()
		local namespace = cluster.namespace()
		local run = host.start {
			kubeconfig = cluster.kubeconfig(), set = { namespace = namespace }, pages = true,
			script = [[
				local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = k8s.config.namespace }
				local function check(map)
					return map.data.missing.field
				end
				local registration = maps:add_event_handler {
					add = function(map) check(map) print "not reached" end,
					update = function(map) print("update", map.metadata.name) error { code = 1 } end,
					delete = function(map) print("delete", map.metadata.name) k8s.sleep(0.01) error("after a wait") end,
				}
				k8s.every(0.05, function() if registration:has_synced() then print "synced" end end)
			]],
		}
		assert.equal("synced", run:line())
		local line = run:log_line "add handler failed"
		for _, part in ipairs {
			" ERROR ", "script=script", "namespace=" .. namespace, "name=kube-root-ca.crt", "script.lua:3: attempt to index field 'missing'",
			" <- ", "script.lua:6: in function <", "informer=", "v1/ConfigMap " .. namespace,
		} do
			contains(line, part)
		end
		assert.truthy(line:match "file=[^ ]*/script%.lua:3 ", line)

		local path = "/api/v1/namespaces/" .. namespace .. "/configmaps"
		cluster.send { { "POST", path, { metadata = { name = "b" } } } }
		contains(run:log_line "add handler failed", "name=b")
		cluster.send { { "PATCH", path .. "/b", { data = { x = "y" } } } }
		contains(run:log_line "update handler failed", "name=b")
		cluster.send { { "DELETE", path .. "/b" } }
		contains(run:log_line "delete handler failed", "after a wait")
		assert.equal(4, run:status().scripts[1].errors)
		assert.is_nil(run.child:stdout():find("not reached", 1, true))
		assert.equal(4, count(run.child:stderr(), " ERROR "))
		run:stop()
	end)
end)
