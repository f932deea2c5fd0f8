-- k8s.conditions against a real API server: what it stores of a condition makes no change the next time.
local cluster = require "support.cluster"
local host = require "support.host"

-- A deployment's conditions have neither an observedGeneration nor, when it is empty, a message.
local SCRIPT = [[
	local deployment = assert(k8s.create { apiVersion = "apps/v1", kind = "Deployment",
		metadata = { namespace = k8s.config.namespace, name = "conditions" },
		spec = { replicas = 0, paused = true, selector = { matchLabels = { a = "b" } },
			template = { metadata = { labels = { a = "b" } }, spec = { containers = { { name = "a", image = "example.com/a" } } } } } })
	local said = {}
	local function set(status, reason)
		deployment = assert(k8s.get(deployment))
		local before = k8s.conditions.get(deployment, "ExampleReady")
		said[#said + 1] = tostring(k8s.conditions.set(deployment, { type = "ExampleReady", status = status, reason = reason }))
		local after = k8s.conditions.get(deployment, "ExampleReady")
		said[#said + 1] = tostring(before ~= nil and before.lastTransitionTime == after.lastTransitionTime)
		deployment = assert(k8s.status.update(deployment))
	end
	set("False", "Begun")
	set("False", "Begun")
	set("False", "Other")
	said[#said + 1] = tostring(k8s.conditions.is_true(deployment, "ExampleReady"))
	set("True", "Done")
	said[#said + 1] = tostring(k8s.conditions.is_true(deployment, "ExampleReady"))
	return table.concat(said, " ")
]]

describe("k8s.conditions on a real API server", function()
	it("changes what it says it changes", function()
		cluster.need()
		local said = host.ask { kubeconfig = cluster.kubeconfig(), set = { namespace = cluster.namespace() }, SCRIPT }
		assert.matches("^true false false true true true false true %l+ true$", said)
	end)
end)
