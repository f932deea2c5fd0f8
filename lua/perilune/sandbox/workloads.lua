--- Pods and what makes them: the defaults of their specs, and what must not change.
local fail = require "perilune.sandbox.fail"
local k8s = require "perilune"
local tree = require "perilune.sandbox.tree"
local validate = require "perilune.sandbox.validate"

local workloads = {}

local function set(object, name, value)
	if object[name] == nil then
		object[name] = value
	end
	return object[name]
end

local function pull_policy(image)
	image = image or ""
	local tag = image:match ":([^:/@]+)$"
	return (not tag and not image:find("@", 1, true) or tag == "latest") and "Always" or "IfNotPresent"
end

local function container(one)
	set(one, "resources", k8s.object {})
	set(one, "terminationMessagePath", "/dev/termination-log")
	set(one, "terminationMessagePolicy", "File")
	set(one, "imagePullPolicy", pull_policy(one.image))
	for _, port in ipairs(one.ports or {}) do
		set(port, "protocol", "TCP")
	end
end

--- The defaults of a pod's spec.
function workloads.pod_spec(spec)
	set(spec, "restartPolicy", "Always")
	set(spec, "terminationGracePeriodSeconds", 30)
	set(spec, "dnsPolicy", "ClusterFirst")
	set(spec, "securityContext", k8s.object {})
	set(spec, "schedulerName", "default-scheduler")
	for _, list in ipairs { "containers", "initContainers" } do
		for _, one in ipairs(spec[list] or {}) do
			container(one)
		end
	end
end

local function template(spec)
	local made = set(spec, "template", {})
	if made.metadata == nil then
		made.metadata = k8s.object {}
	end
	workloads.pod_spec(set(made, "spec", {}))
end

local function rolling(spec, name, values)
	local strategy = set(spec, name, {})
	set(strategy, "type", "RollingUpdate")
	if strategy.type == "RollingUpdate" then
		local update = set(strategy, "rollingUpdate", {})
		for key, value in pairs(values) do
			set(update, key, value)
		end
	end
end

function workloads.deployment_spec(_, object)
	local spec = set(object, "spec", {})
	set(spec, "replicas", 1)
	set(spec, "revisionHistoryLimit", 10)
	set(spec, "progressDeadlineSeconds", 600)
	rolling(spec, "strategy", { maxUnavailable = "25%", maxSurge = "25%" })
	template(spec)
end

function workloads.replica_spec(_, object)
	local spec = set(object, "spec", {})
	set(spec, "replicas", 1)
	template(spec)
end

function workloads.daemon_spec(_, object)
	local spec = set(object, "spec", {})
	set(spec, "revisionHistoryLimit", 10)
	rolling(spec, "updateStrategy", { maxUnavailable = 1, maxSurge = 0 })
	template(spec)
end

function workloads.stateful_spec(_, object)
	local spec = set(object, "spec", {})
	set(spec, "replicas", 1)
	set(spec, "revisionHistoryLimit", 10)
	set(spec, "podManagementPolicy", "OrderedReady")
	set(spec, "persistentVolumeClaimRetentionPolicy", { whenDeleted = "Retain", whenScaled = "Retain" })
	rolling(spec, "updateStrategy", { partition = 0 })
	template(spec)
end

function workloads.cron_spec(_, object)
	local spec = set(object, "spec", {})
	set(spec, "concurrencyPolicy", "Allow")
	set(spec, "suspend", false)
	set(spec, "successfulJobsHistoryLimit", 3)
	set(spec, "failedJobsHistoryLimit", 1)
	template(set(set(spec, "jobTemplate", {}), "spec", {}))
	set(spec.jobTemplate, "metadata", k8s.object {})
end

function workloads.job_spec(_, object)
	local spec = set(object, "spec", {})
	set(spec, "parallelism", 1)
	set(spec, "completions", 1)
	set(spec, "completionMode", "NonIndexed")
	set(spec, "backoffLimit", 6)
	set(spec, "suspend", false)
	set(spec, "manualSelector", false)
	set(spec, "podReplacementPolicy", "TerminatingOrFailed")
	template(spec)
end

--- A job's pods are known by its uid.
function workloads.job_identity(_, object)
	local spec, uid = object.spec, object.metadata.uid
	local labels = set(spec.template.metadata, "labels", {})
	for name, value in pairs {
		["batch.kubernetes.io/controller-uid"] = uid, ["batch.kubernetes.io/job-name"] = object.metadata.name,
		["controller-uid"] = uid, ["job-name"] = object.metadata.name,
	} do
		set(labels, name, value)
	end
	spec.selector = { matchLabels = { ["batch.kubernetes.io/controller-uid"] = uid } }
	object.status = k8s.object {}
end

-- --- what must not change, and must fit ---

local function json_name(value)
	return value == nil and k8s.null or value
end

local KEY = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
	.. "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"

local function check_keys(object, name, causes)
	for _, key in ipairs(tree.keys(object[name] or {})) do
		if not key:find "^[-._%w]+$" then
			causes[#causes + 1] = fail.cause(("%s[%s]"):format(name, key), "FieldValueInvalid", key, KEY)
		end
	end
end

--- Of ConfigMaps and Secrets: their keys, and what must not change where they say that they are immutable.
function workloads.data_problems(object, old)
	local causes = {}
	check_keys(object, "data", causes)
	check_keys(object, "binaryData", causes)
	if old and old.immutable == true then
		if object.immutable ~= true then
			causes[#causes + 1] = fail.cause("immutable", "FieldValueForbidden", nil, "field is immutable when `immutable` is set")
		end
		for _, name in ipairs { "data", "binaryData" } do
			if not tree.equal(object[name], old[name]) then
				causes[#causes + 1] = fail.cause(name, "FieldValueForbidden", nil, "field is immutable when `immutable` is set")
			end
		end
	end
	return causes
end

local SELECTS = { ["apps/deployments"] = true, ["apps/replicasets"] = true, ["apps/daemonsets"] = true, ["apps/statefulsets"] = true }

local function selects(labels, wanted)
	for key, value in pairs(wanted or {}) do
		if (labels or {})[key] ~= value then
			return false
		end
	end
	return true
end

local function selector_problems(object, old)
	local selector = tree.at(object, "spec", "selector")
	if not selector then
		return { fail.cause("spec.selector", "FieldValueRequired") }
	end
	if old and not tree.equal(selector, old.spec.selector) then
		return { fail.cause("spec.selector", "FieldValueInvalid", selector, "field is immutable") }
	end
	local labels = tree.at(object, "spec", "template", "metadata", "labels")
	if not selects(labels, selector.matchLabels) then
		return { fail.cause("spec.template.metadata.labels", "FieldValueInvalid", json_name(labels),
			"`selector` does not match template `labels`") }
	end
	return {}
end

local function container_problems(spec, path)
	local list = spec.containers or {}
	if #list == 0 then
		return { fail.cause(path .. ".containers", "FieldValueRequired") }
	end
	local causes = {}
	for i, one in ipairs(list) do
		local place = ("%s.containers[%d]"):format(path, i - 1)
		if (one.name or "") == "" then
			causes[#causes + 1] = fail.cause(place .. ".name", "FieldValueRequired")
		elseif validate.label_problem(one.name) then
			causes[#causes + 1] = fail.cause(place .. ".name", "FieldValueInvalid", one.name, validate.label_problem(one.name))
		end
		if (one.image or "") == "" then
			causes[#causes + 1] = fail.cause(place .. ".image", "FieldValueRequired")
		end
	end
	return causes
end

--- Causes for a 422.
function workloads.problems(resource, object, old)
	if resource.storage == "/pods" then
		return container_problems(object.spec, "spec")
	elseif SELECTS[resource.storage] then
		local causes = selector_problems(object, old)
		for _, cause in ipairs(container_problems(object.spec.template.spec, "spec.template.spec")) do
			causes[#causes + 1] = cause
		end
		return causes
	end
	return {}
end

return workloads
