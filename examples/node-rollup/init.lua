-- node-rollup: tells in a condition of each Node how many of the pods on it are ready.
--
-- The condition PodsReady is this script's own: it is applied under its own field manager, and the kubelet's conditions are left
-- alone. Pods that have ended, by success or failure, don't count.
local k8s = require "perilune"

local CONDITION = "PodsReady"

local nodes = k8s.informer { apiVersion = "v1", kind = "Node", keep = { "status.conditions" } }

-- Of the many pods only what is looked at here is kept, and a pod is found by its node.
local pods = k8s.informer {
	apiVersion = "v1", kind = "Pod",
	field_selector = "spec.nodeName!=",
	keep = { "spec.nodeName", "status.phase", "status.conditions" },
	index = { node = "spec.nodeName" },
}

k8s.needs { { apiGroups = "", resources = "nodes/status", verbs = "patch" } }

local function count(node)
	local ready, all = 0, 0
	for _, pod in ipairs(pods:list { index = { node = node.metadata.name } }) do
		local phase = k8s.path(pod, "status.phase")
		if phase ~= "Succeeded" and phase ~= "Failed" then
			all = all + 1
			ready = ready + (k8s.conditions.is_true(pod, "Ready") and 1 or 0)
		end
	end
	return ready, all
end

k8s.controller {
	name = "node-rollup",
	watch = nodes,
	map = {
		[pods] = function(pod)
			return { apiVersion = "v1", kind = "Node", name = pod.spec.nodeName }
		end,
	},
	reconcile = function(request, context)
		local node = nodes:get(request)
		if not node then
			return
		end
		local ready, all = count(node)
		local changed = k8s.conditions.set(node, {
			type = CONDITION,
			status = ready == all and "True" or "False",
			reason = ready == all and "AllReady" or "NotAllReady",
			message = ("%d of %d pods are ready"):format(ready, all),
		})
		if not changed then
			return
		end
		local _, err = k8s.status.apply {
			apiVersion = "v1",
			kind = "Node",
			metadata = { name = request.name },
			status = { conditions = { k8s.conditions.get(node, CONDITION) } },
		}
		if not err then
			context.log.info("condition written", { ready = ready, pods = all })
		elseif err.reason ~= "NotFound" then -- the node may have gone meanwhile
			return nil, err
		end
	end,
}
