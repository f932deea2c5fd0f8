local cli = require "support.cli"
local cluster = require "support.cluster"
local manifests = require "support.manifests"

describe("examples/pod-log", function()
	local folder = "examples/pod-log"
	local namespace, pods, child

	-- As a user whose only rights are those of manifests/rbac.yaml.
	local function start()
		local kubeconfig = manifests.kubeconfig(manifests.read(folder .. "/manifests/rbac.yaml"), cluster)
		child = cli.start { "run", folder, "--kubeconfig", kubeconfig, "-n", namespace, "--listen", "off" }
		child:wait_for("ha%l+ synced", 30)
	end

	local function create(pod)
		pod.metadata.namespace = namespace
		local status, body = cluster.curl("POST", pods, pod)
		assert.equal(201, status, body.message)
	end

	local function pod_named(name)
		return {
			apiVersion = "v1", kind = "Pod", metadata = { name = name },
			spec = { containers = { { name = "main", image = "example.com/main:1" } } },
		}
	end

	local function patch(path, change)
		assert.equal(200, (cluster.curl("PATCH", pods .. "/" .. path, change)))
	end

	local function delete(name)
		assert.equal(200, (cluster.curl("DELETE", pods .. "/" .. name .. "?gracePeriodSeconds=0")))
	end

	local function line(what, name, text)
		assert.equal(("%-7s  %s/%s  %s"):format(what, namespace, name, text), child:line(20))
	end

	before_each(function()
		cluster.need()
		namespace = cluster.namespace()
		pods = "/api/v1/namespaces/" .. namespace .. "/pods"
	end)

	after_each(function()
		if child then
			child:close()
		end
	end)

	it("tells what is there, what comes, what changes its phase and what goes, and nothing else", function()
		create(pod_named "early")
		start()
		line("present", "early", "Pending")

		create(pod_named "web-1")
		line("added", "web-1", "Pending")
		patch("web-1", { metadata = { labels = { tier = "gold" } } })
		patch("web-1/status", { status = { phase = "Running" } })
		line("changed", "web-1", "Pending -> Running")
		patch("web-1/status", { status = { phase = "Succeeded" } })
		line("changed", "web-1", "Running -> Succeeded")
		delete "web-1"
		line("deleted", "web-1", "Succeeded")
		delete "early"
		line("deleted", "early", "Pending")

		child:kill "TERM"
		assert.equal(0, (child:wait(10)))
		assert.equal(6, select(2, child:stdout():gsub("\n", "")), child:stdout())
	end)

	it("is shown by its demo object", function()
		start()
		local demo = manifests.read(folder .. "/manifests/demo.yaml")
		create(manifests.find(demo, "Pod"))
		line("added", "pod-log-demo", "Pending")
	end)

	it("has a role that is bound to its service account", function()
		manifests.check_binding(manifests.read(folder .. "/manifests/rbac.yaml"))
	end)

	it("loads without a cluster", function()
		local code, out, err = cli.run { "check", folder }
		assert.equal(0, code, err)
		assert.equal("pod-log (examples/pod-log/init.lua)\n  informer v1/Pod, 1 handler\n", out)
	end)
end)
