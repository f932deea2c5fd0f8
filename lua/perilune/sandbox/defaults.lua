--- What the server adds to objects of built-in kinds, where clients rely on it, and the checks that go with it.
local k8s = require "perilune"
local base64 = require "perilune.sandbox.base64"
local definitions = require "perilune.sandbox.definitions"
local tree = require "perilune.sandbox.tree"
local workloads = require "perilune.sandbox.workloads"

local defaults = {}

local function set(object, name, value)
	if object[name] == nil then
		object[name] = value
	end
	return object[name]
end

-- --- new objects ---

local NEW = {}

NEW["/namespaces"] = function(_, object)
	local labels = set(object.metadata, "labels", {})
	labels["kubernetes.io/metadata.name"] = object.metadata.name
end

local function encode_strings(object)
	if not object.stringData then
		return
	end
	local data = set(object, "data", {})
	for key, value in pairs(object.stringData) do
		data[key] = base64.encode_padded(value)
	end
	object.stringData = nil
end

NEW["/secrets"] = function(_, object)
	encode_strings(object)
	set(object, "type", "Opaque")
end

NEW["/pods"] = function(_, object)
	workloads.pod_spec(set(object, "spec", {}))
	set(object.spec, "enableServiceLinks", true)
end

local function number_ports(spec)
	for _, port in ipairs(spec.ports or {}) do
		set(port, "protocol", "TCP")
		set(port, "targetPort", port.port)
	end
end

NEW["/services"] = function(_, object)
	local spec = set(object, "spec", {})
	set(spec, "type", "ClusterIP")
	set(spec, "sessionAffinity", "None")
	set(spec, "internalTrafficPolicy", "Cluster")
	number_ports(spec)
end

NEW["/persistentvolumeclaims"] = function(_, object)
	set(set(object, "spec", {}), "volumeMode", "Filesystem")
end

NEW["/nodes"] = function(_, object)
	set(object, "spec", k8s.object {})
end

NEW["apps/deployments"] = workloads.deployment_spec
NEW["apps/replicasets"] = workloads.replica_spec
NEW["apps/daemonsets"] = workloads.daemon_spec
NEW["apps/statefulsets"] = workloads.stateful_spec
NEW["batch/jobs"] = workloads.job_spec
NEW["batch/cronjobs"] = workloads.cron_spec
NEW["apiextensions.k8s.io/customresourcedefinitions"] = function(_, object)
	definitions.complete(object)
end

--- Adds to an object that is about to be created, as if the client had said it.
function defaults.new(server, resource, object)
	local add = NEW[resource.storage]
	if add then
		add(server, object)
	end
end

-- --- what the server says in new objects ---

local OWN = {}

OWN["/namespaces"] = function(_, object)
	object.spec = { finalizers = k8s.array { "kubernetes" } }
	object.status = { phase = "Active" }
end

OWN["/services"] = function(server, object)
	local spec = object.spec
	if spec.type ~= "ExternalName" and spec.clusterIP == nil then
		server.addresses = (server.addresses or 1) + 1
		spec.clusterIP = ("10.0.%d.%d"):format(math.floor(server.addresses / 256) % 256, server.addresses % 256)
		spec.clusterIPs = k8s.array { spec.clusterIP }
	end
	set(spec, "ipFamilies", k8s.array { "IPv4" })
	set(spec, "ipFamilyPolicy", "SingleStack")
	object.status = { loadBalancer = k8s.object {} }
end

local function status(make)
	return function(_, object)
		object.status = make()
	end
end

local function empty()
	return k8s.object {}
end

local function no_replicas()
	return { replicas = 0 }
end

local function tolerate(key)
	return { key = key, operator = "Exists", effect = "NoExecute", tolerationSeconds = 300 }
end

OWN["/pods"] = function(_, object)
	local spec = object.spec
	set(spec, "serviceAccountName", "default")
	set(spec, "serviceAccount", spec.serviceAccountName)
	set(spec, "priority", 0)
	set(spec, "preemptionPolicy", "PreemptLowerPriority")
	set(spec, "tolerations", k8s.array { tolerate "node.kubernetes.io/not-ready", tolerate "node.kubernetes.io/unreachable" })
	object.status = { phase = "Pending", qosClass = "BestEffort" }
end
OWN["/persistentvolumeclaims"] = status(function()
	return { phase = "Pending" }
end)
OWN["apps/daemonsets"] = status(function()
	return { currentNumberScheduled = 0, desiredNumberScheduled = 0, numberMisscheduled = 0, numberReady = 0 }
end)
OWN["apps/replicasets"], OWN["apps/statefulsets"] = status(no_replicas), status(no_replicas)
OWN["/nodes"], OWN["apps/deployments"], OWN["batch/cronjobs"] = status(empty), status(empty), status(empty)
OWN["batch/jobs"] = workloads.job_identity
OWN["apiextensions.k8s.io/customresourcedefinitions"] = function(_, object)
	object.status = definitions.new_status(object.spec or {})
end

--- Adds what no manager of fields owns.
function defaults.own(server, resource, object)
	local add = OWN[resource.storage]
	if add then
		add(server, object)
	end
end

-- --- changed ones ---

local CHANGED = {
	["/secrets"] = function(_, object)
		encode_strings(object)
		set(object, "type", "Opaque")
	end,
	["/namespaces"] = function(_, object, old)
		local labels = set(object.metadata, "labels", {})
		labels["kubernetes.io/metadata.name"] = object.metadata.name
		object.spec = tree.copy(old.spec)
	end,
	["/services"] = function(_, object, old)
		local spec = set(object, "spec", {})
		number_ports(spec)
		for _, name in ipairs { "clusterIP", "clusterIPs", "type", "sessionAffinity", "internalTrafficPolicy", "ipFamilies", "ipFamilyPolicy" } do
			set(spec, name, tree.at(old, "spec", name))
		end
	end,
	["/pods"] = function(_, object)
		workloads.pod_spec(set(object, "spec", {}))
	end,
	["apps/deployments"] = workloads.deployment_spec,
	["apps/replicasets"] = workloads.replica_spec,
	["apps/daemonsets"] = workloads.daemon_spec,
	["apps/statefulsets"] = workloads.stateful_spec,
	["batch/cronjobs"] = workloads.cron_spec,
	["apiextensions.k8s.io/customresourcedefinitions"] = function(_, object)
		definitions.complete(object)
	end,
}

--- Adds to an object that is about to take the place of old.
function defaults.changed(server, resource, object, old)
	local add = CHANGED[resource.storage]
	if add then
		add(server, object, old)
	end
end

-- --- checks ---

--- Causes for a 422: what is wrong with the object beside its metadata.
function defaults.problems(server, resource, object, old)
	if resource.storage == "apiextensions.k8s.io/customresourcedefinitions" then
		return definitions.problems(server, object)
	elseif resource.storage == "/configmaps" or resource.storage == "/secrets" then
		return workloads.data_problems(object, old)
	end
	return workloads.problems(resource, object, old)
end

-- --- kinds that only answer ---

local REVIEWS = {
	SelfSubjectAccessReview = function()
		return { allowed = true }
	end,
	SubjectAccessReview = function()
		return { allowed = true }
	end,
	TokenReview = function()
		return { authenticated = false, user = {} }
	end,
	SelfSubjectReview = function()
		return { userInfo = { username = "sandbox", groups = k8s.array { "system:masters", "system:authenticated" } } }
	end,
}

--- Everybody may do everything here.
function defaults.review(resource, object)
	object.status = REVIEWS[resource.kind](object)
	return object
end

return defaults
