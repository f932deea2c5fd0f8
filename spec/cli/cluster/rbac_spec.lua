-- What `perilune rbac` prints is given to a user who has nothing else, and the scripts run as that user; `perilune check` finds nothing
-- missing, and what is taken away it names.
local cli = require "support.cli"
local cluster = require "support.cluster"
local files = require "support.files"
local k8s = require "perilune"

local RBAC = "/apis/rbac.authorization.k8s.io/v1/"
local SECONDS = 30

describe("perilune rbac, on a real API server", function()
	local before_each, it = cluster.when_up(before_each, it)
	local namespace, user, kubeconfig, child

	before_each(function()
		user, kubeconfig = cluster.need_user()
		namespace = cluster.namespace()
	end)

	after_each(function()
		if child then
			child:kill "KILL"
		end
		child = nil
	end)

	local function path_of(object)
		local place = object.metadata.namespace and "namespaces/" .. object.metadata.namespace .. "/" or ""
		return (object.kind == "ServiceAccount" and "/api/v1/" or RBAC) .. place .. object.kind:lower() .. "s"
	end

	-- As kubectl would, but to the user in place of the service account. The objects by their kind.
	local function grant(...)
		local account = namespace .. "/" .. cluster.random_name()
		local code, out, err = cli.run { "rbac", "--service-account", account, ... }
		assert.equal(0, code, err)
		local made = {}
		for _, object in ipairs(k8s.yaml.decode_all(out)) do
			if object.subjects then
				object.subjects = { { apiGroup = "rbac.authorization.k8s.io", kind = "User", name = user } }
			end
			cluster.make(path_of(object), object)
			made[object.kind] = object
		end
		return made
	end

	local function check(...)
		local code, out, err = cli.run { "check", "--kubeconfig", kubeconfig, ... }
		return code, code == 0 and out or err
	end

	-- The server takes up new rights a moment later.
	local function await_check(wanted, ...)
		local arguments, code, text = { ... }, nil, nil
		local ok = pcall(cluster.await, SECONDS, "another word of check", function()
			code, text = check(unpack(arguments))
			return code == 0 and not wanted or text == wanted
		end)
		assert(ok, ("check says %s: %s"):format(tostring(code), tostring(text)))
	end

	local function start(...)
		child = cli.start { "run", "--kubeconfig", kubeconfig, "--listen", "off", ... }
		child:wait_for("ha%l+ synced", SECONDS)
	end

	local function stop()
		child:kill "TERM"
		assert.equal(0, (child:wait(SECONDS)))
		assert.falsy(child:stderr():find("orbidden", 1, true), child:stderr())
		assert.falsy(child:stderr():find("403", 1, true), child:stderr())
	end

	local function url(name, place)
		return ("/api/v1/namespaces/%s/configmaps/%s"):format(place or namespace, name)
	end

	local function configmap(name, metadata, data)
		metadata.name = name
		assert.equal(201, (cluster.curl("POST", url "", { apiVersion = "v1", kind = "ConfigMap", metadata = metadata, data = data })))
	end

	local function await_status(status, path)
		cluster.await(SECONDS, path .. " to answer " .. status, function()
			return cluster.curl("GET", path) == status
		end)
	end

	it("lets examples/mirror do its work, and check names a right that is taken away", function()
		local other = cluster.namespace()
		local code, text = check "examples/mirror"
		assert.equal(1, code)
		assert.equal("missing: list, watch, create, update, delete on configmaps\nmissing: list, watch on namespaces\n", text)
		local role = grant("examples/mirror").ClusterRole
		await_check(nil, "examples/mirror")
		start "examples/mirror"
		configmap("settings", {
			labels = { ["example.com/mirror"] = "yes" },
			annotations = { ["example.com/mirror-to"] = "kubernetes.io/metadata.name=" .. other },
		}, { color = "green" })
		await_status(200, url("settings", other))
		assert.equal(200, (cluster.curl("PATCH", url "settings", { data = { color = "red" } })))
		cluster.await(SECONDS, "the change to be copied", function()
			local _, copy = cluster.curl("GET", url("settings", other))
			return copy.data.color == "red"
		end)
		assert.equal(200, (cluster.curl("DELETE", url "settings")))
		await_status(404, url("settings", other))
		stop()
		for _, rule in ipairs(role.rules) do
			rule.verbs = { "list", "watch" }
		end
		assert.equal(200, (cluster.curl("PUT", RBAC .. "clusterroles/" .. role.metadata.name, role)))
		await_check("missing: create, update, delete on configmaps\n", "examples/mirror")
	end)

	it("lets examples/label-sync do its work", function()
		grant "examples/label-sync"
		await_check(nil, "examples/label-sync")
		local prefix = namespace .. ".example.com/"
		assert.equal(200, (cluster.curl("PATCH", "/api/v1/namespaces/" .. namespace, { metadata = { labels = { [prefix .. "team"] = "web" } } })))
		configmap("settings", {})
		start("examples/label-sync", "--set", "prefix=" .. prefix)
		cluster.await(SECONDS, "the label", function()
			local _, map = cluster.curl("GET", url "settings")
			return map.metadata.labels and map.metadata.labels[prefix .. "team"] == "web"
		end)
		stop()
	end)

	it("is enough in one namespace for finalizers, Events and a Lease", function()
		local path = files.write(files.folder() .. "/keeper.lua", [[
			local k8s = require "perilune"
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", field_selector = "metadata.name=settings" }
			local function tell(object, reason)
				assert(k8s.event(object, { reason = reason, action = "Keep", message = "kept" }))
			end
			k8s.controller {
				name = "keeper", watch = maps, leader = true, finalizer = "example.com/keeper",
				reconcile = function(request) tell(maps:get(request), "Seen") end,
				cleanup = function(object) tell(object, "Gone") end,
			}
		]])
		local flags = { "-n", namespace, "--leader-elect", "--lease", namespace .. "/keeper" }
		local made = grant(path, unpack(flags))
		assert.is_nil(made.ClusterRole)
		await_check(nil, path, unpack(flags))
		start(path, unpack(flags))
		configmap("settings", {})
		local function await_event(reason)
			cluster.await(SECONDS, "the Event " .. reason, function()
				local _, list = cluster.curl("GET", "/apis/events.k8s.io/v1/namespaces/" .. namespace .. "/events")
				for _, event in ipairs(list.items) do
					if event.reason == reason then
						return true
					end
				end
			end)
		end
		await_event "Seen"
		assert.equal(200, (cluster.curl("DELETE", url "settings")))
		await_status(404, url "settings")
		await_event "Gone"
		stop()
	end)

	it("says in check which kinds the server does not have", function()
		local code, text = check(files.write(files.folder() .. "/x.lua", [[
			local k8s = require "perilune"
			k8s.informer { apiVersion = "apps/v1", kind = "Deploymnt", namespace = "shop" }
			k8s.informer { apiVersion = "v1", kind = "Secret", namespace = "shop" }
		]]))
		assert.equal(1, code)
		assert.equal([[
the server has no kind "Deploymnt" in apps/v1; did you mean kind Deployment in apps/v1?
missing: list, watch on secrets in namespace shop
]], text)
	end)
end)
