--- Which members the objects of built-in kinds may have: of themselves and of their metadata. What lies deeper is taken as
-- it comes.
local tree = require "perilune.sandbox.tree"

local members = {}

local function set(text)
	local found = {}
	for name in text:gmatch "%S+" do
		found[name] = true
	end
	return found
end

local METADATA = set [[name generateName namespace selfLink uid resourceVersion generation creationTimestamp deletionTimestamp
	deletionGracePeriodSeconds labels annotations ownerReferences finalizers managedFields]]

local ALWAYS = set "apiVersion kind metadata"
local USUAL = set "spec status"

local OF_KIND = {
	ConfigMap = set "data binaryData immutable",
	Secret = set "data stringData type immutable",
	ServiceAccount = set "secrets imagePullSecrets automountServiceAccountToken",
	Endpoints = set "subsets",
	EndpointSlice = set "addressType endpoints ports",
	Role = set "rules", ClusterRole = set "rules aggregationRule",
	RoleBinding = set "subjects roleRef", ClusterRoleBinding = set "subjects roleRef",
	PodTemplate = set "template",
	ControllerRevision = set "data revision",
	PriorityClass = set "value globalDefault description preemptionPolicy",
	RuntimeClass = set "handler overhead scheduling",
	StorageClass = set "provisioner parameters reclaimPolicy mountOptions allowVolumeExpansion volumeBindingMode allowedTopologies",
	MutatingWebhookConfiguration = set "webhooks", ValidatingWebhookConfiguration = set "webhooks",
	Event = set [[involvedObject reason message source firstTimestamp lastTimestamp count type eventTime series action related
		reportingComponent reportingInstance reportingController regarding note deprecatedSource deprecatedFirstTimestamp
		deprecatedLastTimestamp deprecatedCount]],
}

--- Takes away what no object of the kind has; the paths of it, in order.
function members.prune(resource, object)
	local known, unknown = OF_KIND[resource.kind] or USUAL, {}
	for _, name in ipairs(tree.keys(object)) do
		if not known[name] and not ALWAYS[name] then
			unknown[#unknown + 1], object[name] = name, nil
		end
	end
	for _, name in ipairs(tree.keys(object.metadata)) do
		if not METADATA[name] then
			unknown[#unknown + 1], object.metadata[name] = "metadata." .. name, nil
		end
	end
	return unknown
end

return members
