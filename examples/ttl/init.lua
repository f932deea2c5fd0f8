-- ttl: deletes Jobs some time after they have finished, and their pods with them.
--
-- The annotation example.com/ttl of a Job says after how many seconds; "never" keeps it. Option:
--   --set ttl=600   seconds for Jobs without the annotation (3600)
local k8s = require "perilune"

local ANNOTATION = "example.com/ttl"

-- Digits alone: "nan" and "1e99" are numbers to Lua.
local function seconds(text)
	return tonumber(text:match "^%d+$")
end

local DEFAULT = k8s.config.ttl or "3600"
assert(seconds(DEFAULT), "ttl must be a number of seconds")

-- Of a Job's template, which is most of it, nothing is needed.
local jobs = k8s.informer { apiVersion = "batch/v1", kind = "Job", keep = { "metadata", "status.conditions" } }

k8s.needs { { apiGroups = "batch", resources = "jobs", verbs = "delete" } }

-- When it finished, on k8s.now's scale; nil while it has not.
local function finished_at(job)
	for _, kind in ipairs { "Complete", "Failed" } do
		if k8s.conditions.is_true(job, kind) then
			return k8s.time(k8s.conditions.get(job, kind).lastTransitionTime)
		end
	end
end

-- Seconds, or nil for ever. What is no number must not delete anything, and will not become one by a retry.
local function ttl_of(job)
	local text = k8s.path(job, "metadata.annotations['" .. ANNOTATION .. "']", DEFAULT)
	if text == "never" then
		return nil
	end
	return seconds(text) or k8s.terminal(ANNOTATION .. ' must be seconds or "never", not ' .. text)
end

-- A Job that is changed meanwhile brings its key anew, so what was asked for before is looked at again and does no harm.
local function reconcile(request, context)
	local job = jobs:get(request)
	local finished = job and not job.metadata.deletionTimestamp and finished_at(job)
	local ttl = finished and ttl_of(job)
	if not ttl then
		return
	end
	local left = finished + ttl - k8s.now()
	if left > 0 then
		return { requeue_after = math.min(left, 86400) }
	end
	-- Not the next Job of that name, nor this one if it was given more time a moment ago.
	local version = { uid = job.metadata.uid, resourceVersion = job.metadata.resourceVersion }
	local _, err = k8s.delete(job, { propagation = "Background", preconditions = version })
	if err and err.reason ~= "NotFound" then
		return nil, err
	end
	context.log.info("deleted", { age = math.floor(ttl - left) })
end

k8s.controller { name = "ttl", watch = jobs, reconcile = reconcile }
