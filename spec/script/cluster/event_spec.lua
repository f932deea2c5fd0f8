-- k8s.event on a real API server: it takes what is sent, and a client that describes the object finds it.
local cluster = require "support.cluster"
local host = require "support.host"

local it = cluster.when_up(it)

local function ask(text, script)
	return (host.ask { kubeconfig = cluster.kubeconfig(), set = { namespace = script.namespace, name = script.name }, text })
end

-- As `kubectl describe` asks.
local function events_of(object, namespace)
	local metadata = object.metadata
	local selector = ("involvedObject.name=%s,involvedObject.kind=%s,involvedObject.uid=%s"):format(metadata.name, object.kind, metadata.uid)
	local status, list = cluster.curl("GET", ("/api/v1/namespaces/%s/events?fieldSelector=%s"):format(namespace, selector))
	assert.equal(200, status)
	return list.items
end

describe("k8s.event on a real API server", function()
	it("is found with the object, and a second of its like makes it a series", function()
		local namespace = cluster.namespace()
		local map = ask([[
			local map = assert(k8s.create { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = k8s.config.namespace, name = "one" } })
			for i = 1, 3 do
				local event = assert(k8s.event(map, { reason = "Synced", action = "Sync", message = ("é"):rep(600), related = {
					apiVersion = "v1", kind = "Node", name = "n1" } }))
				assert(event.series == nil or event.series.count == i or i == 3, i)
			end
			assert(k8s.event(map, { reason = "Failed", type = "Warning" }))
			return map
		]], { namespace = namespace })
		local found = events_of(map, namespace)
		table.sort(found, function(a, b)
			return a.reason > b.reason
		end)
		assert.equal(2, #found)
		assert.same({ "Synced", "Sync", "Normal", "perilune/script", 2 },
			{ found[1].reason, found[1].action, found[1].type, found[1].reportingComponent, found[1].series.count })
		assert.equal(1024, #found[1].message)
		assert.same({ "Failed", "Failed", "Warning" }, { found[2].reason, found[2].action, found[2].type })
	end)

	it("goes to the namespace default for an object without one, whatever its name is", function()
		local name = cluster.random_name() .. ":Spec"
		local role = ask([[
			local role = assert(k8s.create { apiVersion = "rbac.authorization.k8s.io/v1", kind = "ClusterRole", metadata = { name = k8s.config.name } })
			assert(k8s.event(role, { reason = "Seen" }))
			assert(k8s.event(role, { reason = "Seen" }))
			assert(k8s.delete(role))
			return role
		]], { name = name })
		local found = events_of(role, "default")
		assert.equal(1, #found)
		assert.equal(2, found[1].series.count)
		cluster.curl("DELETE", "/api/v1/namespaces/default/events/" .. found[1].metadata.name)
	end)

	it("names the controller whose reconcile sends it", function()
		local namespace = cluster.namespace()
		cluster.curl("POST", ("/api/v1/namespaces/%s/configmaps"):format(namespace), {
			apiVersion = "v1", kind = "ConfigMap", metadata = { name = "one" } })
		local run = host.start { kubeconfig = cluster.kubeconfig(), set = { namespace = namespace }, script = [[
			local maps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", namespace = k8s.config.namespace, field_selector = "metadata.name=one" }
			k8s.controller {
				name = "mirror", watch = maps,
				reconcile = function(request)
					local event = assert(k8s.event(request, { reason = "Seen" }))
					print(event.reportingController, event.regarding.uid == maps:get(request).metadata.uid)
				end,
			}
		]] }
		assert.equal("perilune/script.mirror\ttrue", run:line())
		run:stop()
	end)
end)
