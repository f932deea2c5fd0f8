local cli = require "support.cli"
local cluster = require "support.cluster"
local manifests = require "support.manifests"

local role = manifests.read "examples/label-sync/manifests/rbac.yaml"

describe("examples/label-sync", function()
	local folder = "examples/label-sync"
	local namespace, path, prefix, kubeconfig, child

	local function url(name)
		return path .. "/configmaps/" .. (name or "")
	end

	-- The prefix is this spec's own, so that it changes nothing of others'.
	local function start(...)
		child = cli.start {
			"run", folder, "--kubeconfig", kubeconfig, "--set", "prefix=" .. prefix, "--listen", "127.0.0.1:0", ...
		}
		local port = child:wait_for("listening .-port=(%d+)", 10)
		child:wait_for("ha%l+ synced", 30)
		return "http://127.0.0.1:" .. port
	end

	local function stop()
		child:kill "TERM"
		assert.equal(0, (child:wait(20)))
	end

	-- With the labels that the names in it stand for.
	local function labels(given)
		local made = {}
		for name, value in pairs(given or {}) do
			made[name:match "/" and name or prefix .. name] = value
		end
		return made
	end

	local function label_namespace(given)
		assert.equal(200, (cluster.curl("PATCH", path, { metadata = { labels = labels(given) } })))
	end

	local function configmap(name, given)
		return {
			apiVersion = "v1", kind = "ConfigMap", metadata = { name = name, labels = labels(given) }, data = { color = "green" },
		}
	end

	local function create(name, given)
		assert.equal(201, (cluster.curl("POST", path .. "/configmaps", configmap(name, given))))
	end

	local function metadata(name)
		local status, body = cluster.curl("GET", url(name))
		assert.equal(200, status)
		return body.metadata
	end

	local function await_labels(name, given)
		local wanted = labels(given)
		cluster.await(20, "the labels of " .. name, function()
			return pcall(assert.same, wanted, metadata(name).labels or {})
		end)
	end

	-- How many calls of its handlers have ended, once all have had the initial state.
	local function handled(page)
		local status = require("cjson").decode((require("support.files").output_of { "curl", "--silent", page .. "/status" }))
		for _, handler in ipairs(status.scripts[1].handlers) do
			if not handler.synced then
				return 0
			end
		end
		return status.scripts[1].events
	end

	before_each(function()
		cluster.need()
		namespace = cluster.namespace()
		path = "/api/v1/namespaces/" .. namespace
		prefix = cluster.random_name() .. ".example.com/"
		kubeconfig = manifests.kubeconfig(role, cluster)
	end)

	after_each(function()
		if child then
			child:close()
		end
	end)

	it("gives the namespace's labels to what is there at start", function()
		label_namespace { team = "web", ["other.example.com/team"] = "ops" }
		create "bare"
		create("old", { team = "ops", gone = "yes", ["a/b"] = "c" })
		start()
		await_labels("bare", { team = "web" })
		await_labels("old", { team = "web", ["a/b"] = "c" })
	end)

	it("follows changes of the namespace and of its ConfigMaps", function()
		start()
		create "settings"
		label_namespace { team = "web", tier = "gold" }
		await_labels("settings", { team = "web", tier = "gold" })
		label_namespace { tier = require("cjson").null, team = "ops" }
		await_labels("settings", { team = "ops" })
		cluster.curl("PATCH", url "settings", { metadata = { labels = labels { team = "mine", ["a/b"] = "c" } } })
		await_labels("settings", { team = "ops", ["a/b"] = "c" })
		create "late"
		await_labels("late", { team = "ops" })
		stop()
		assert.is_nil(child:stderr():find("ERROR", 1, true), child:stderr())
		assert.truthy(child:stderr():find("INFO  labels synced ", 1, true), child:stderr())
	end)

	it("writes nothing when all is right", function()
		label_namespace { team = "web" }
		create "settings"
		start()
		await_labels("settings", { team = "web" })
		await_labels("kube-root-ca.crt", { team = "web" })
		stop()
		local before = { metadata("settings").resourceVersion, metadata("kube-root-ca.crt").resourceVersion }

		local page = start("--set", "resync=1")
		local first = cluster.await(20, "the initial state", function()
			local count = handled(page)
			return count > 0 and count
		end)
		cluster.await(20, "a resync of all", function()
			return handled(page) >= 2 * first
		end)
		label_namespace { ["a/b"] = "c" }
		cluster.await(20, "another", function()
			return handled(page) >= 3 * first
		end)
		stop()
		assert.is_nil(child:stderr():find("labels synced", 1, true), child:stderr())
		assert.same(before, { metadata("settings").resourceVersion, metadata("kube-root-ca.crt").resourceVersion })
	end)

	it("passes over what was changed or deleted meanwhile", function()
		local first, changes = {}, {}
		for i = 1, 100 do
			first[i] = { "POST", path .. "/configmaps", configmap(("c%03d"):format(i)) }
		end
		for i = 71, 100 do
			local one = url(("c%03d"):format(i))
			changes[#changes + 1] = i > 85 and { "DELETE", one } or { "PATCH", one, { data = { color = "red" } } }
		end
		cluster.send(first, true)
		start()
		label_namespace { team = "web" }
		child:wait_for("labels synced", 20)
		cluster.send(changes)
		for i = 1, 85, 12 do
			await_labels(("c%03d"):format(i), { team = "web" })
		end
		await_labels("c085", { team = "web" })
		stop()
		assert.is_nil(child:stderr():find("ERROR", 1, true), child:stderr())
	end)

	it("says what it may not do, and tries again with the resync", function()
		local user = cluster.random_name()
		kubeconfig = cluster.user(user)
		if not kubeconfig then
			return pending "no user can be made"
		end
		cluster.grant(user, { { apiGroups = { "" }, resources = { "namespaces", "configmaps" }, verbs = { "list", "watch" } } })
		label_namespace { team = "web" }
		create "settings"
		start("--set", "resync=1")
		local line = child:wait_for("(labels not synced[^\n]*name=settings[^\n]*)\n", 20)
		assert.truthy(line:find(namespace, 1, true), line)
		assert.truthy(line:find("cannot patch resource", 1, true), line)
		cluster.grant(user, { { apiGroups = { "" }, resources = { "configmaps" }, verbs = { "patch" } } })
		await_labels("settings", { team = "web" })
	end)

	it("works in one namespace", function()
		label_namespace { team = "web" }
		create "settings"
		start("-n", namespace)
		await_labels("settings", { team = "web" })
	end)

	it("writes nothing in a dry run", function()
		label_namespace { team = "web" }
		create "settings"
		local before = metadata("settings").resourceVersion
		start "--dry-run"
		child:wait_for("labels synced[^\n]*settings", 20)
		stop()
		assert.equal(before, metadata("settings").resourceVersion)
	end)

	it("is shown by its demo objects", function()
		local demo = manifests.read(folder .. "/manifests/demo.yaml")
		local example, settings = manifests.find(demo, "Namespace"), manifests.find(demo, "ConfigMap")
		assert.equal(example.metadata.name, settings.metadata.namespace)
		settings.metadata.namespace = namespace
		for label, value in pairs(example.metadata.labels) do
			label_namespace { [label:gsub("^example%.com/", prefix)] = value }
		end
		assert.equal(201, (cluster.curl("POST", path .. "/configmaps", settings)))
		start()
		await_labels(settings.metadata.name, { team = "payments", ["cost-center"] = "42" })
	end)

	it("refuses a prefix that is none", function()
		for _, bad in ipairs { "", "example.com", "/", "a b/" } do
			local code, _, err = cli.run { "check", folder, "--set", "prefix=" .. bad }
			assert.equal(1, code)
			assert.truthy(err:find("prefix must be a domain name and a slash", 1, true), err)
		end
	end)

	it("has a role that is bound to its service account", function()
		manifests.check_binding(role)
	end)
end)
