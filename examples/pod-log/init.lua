-- pod-log: one line for each pod that is there at start, comes, changes its phase or goes.
local k8s = require "perilune"

local pods = k8s.informer { apiVersion = "v1", kind = "Pod" }

-- A pod that is only just created may have no status yet.
local function phase(pod)
	return pod.status and pod.status.phase or "Unknown"
end

local function say(what, pod, text)
	print(("%-7s  %s/%s  %s"):format(what, pod.metadata.namespace, pod.metadata.name, text))
end

pods:add_event_handler {
	fields = { "metadata.namespace", "metadata.name", "status.phase" }, -- the rest of a pod is never decoded

	add = function(pod, event)
		say(event.initial and "present" or "added", pod, phase(pod))
	end,

	update = function(pod, event)
		local before, now = phase(event.old), phase(pod)
		if before ~= now then
			say("changed", pod, before .. " -> " .. now)
		end
	end,

	delete = function(pod)
		say("deleted", pod, phase(pod))
	end,
}
