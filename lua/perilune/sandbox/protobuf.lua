--- Kubernetes' protobuf, read only, for the few kinds that kubectl creates with it. Numbers of fields are those of the
-- kinds' published .proto files. A message with a field that is not in the table here is refused as a whole, so that
-- nothing is lost.
local base64 = require "perilune.sandbox.base64"
local k8s = require "perilune"

local protobuf = {}

-- A field: { name, how }; how is "text", "number", "bool", "bytes", "map" (of texts), "bytes_map", "time", or a table of
-- fields; with `list` it repeats.
local function list(name, how)
	return { name, how, list = true }
end

local OWNER = {
	{ "kind", "text" }, nil, { "name", "text" }, { "uid", "text" }, { "apiVersion", "text" }, { "controller", "bool" },
	{ "blockOwnerDeletion", "bool" },
}

local METADATA = {
	{ "name", "text" }, { "generateName", "text" }, { "namespace", "text" }, { "selfLink", "text" }, { "uid", "text" },
	{ "resourceVersion", "text" }, { "generation", "number" }, { "creationTimestamp", "time" }, { "deletionTimestamp", "time" },
	{ "deletionGracePeriodSeconds", "number" }, { "labels", "map" }, { "annotations", "map" }, list("ownerReferences", OWNER),
	list("finalizers", "text"),
}

local EMPTY = {}
local NAMED = { { "name", "text" } }

local RESOURCE_ATTRIBUTES = {
	{ "namespace", "text" }, { "verb", "text" }, { "group", "text" }, { "version", "text" }, { "resource", "text" },
	{ "subresource", "text" }, { "name", "text" },
}

local REVIEW_STATUS = { { "allowed", "bool" }, { "reason", "text" }, { "evaluationError", "text" }, { "denied", "bool" } }

local PORT = {
	{ "name", "text" }, { "hostPort", "number" }, { "containerPort", "number" }, { "protocol", "text" }, { "hostIP", "text" },
}

local CONTAINER = {
	{ "name", "text" }, { "image", "text" }, list("command", "text"), list("args", "text"), { "workingDir", "text" },
	list("ports", PORT), list("env", { { "name", "text" }, { "value", "text" } }), { "resources", EMPTY },
	[13] = { "terminationMessagePath", "text" }, [14] = { "imagePullPolicy", "text" }, [16] = { "stdin", "bool" },
	[17] = { "stdinOnce", "bool" }, [18] = { "tty", "bool" }, [20] = { "terminationMessagePolicy", "text" },
}

-- The booleans of the host's namespaces are always sent.
local POD_SPEC = {
	[2] = list("containers", CONTAINER), [3] = { "restartPolicy", "text" }, [4] = { "terminationGracePeriodSeconds", "number" },
	[6] = { "dnsPolicy", "text" }, [7] = { "nodeSelector", "map" }, [8] = { "serviceAccountName", "text" },
	[9] = { "serviceAccount", "text" }, [10] = { "nodeName", "text" }, [11] = { "hostNetwork", "bool" }, [12] = { "hostPID", "bool" },
	[13] = { "hostIPC", "bool" }, [16] = { "hostname", "text" }, [17] = { "subdomain", "text" }, [19] = { "schedulerName", "text" },
	[24] = { "priorityClassName", "text" },
}

local TEMPLATE = { { "metadata", METADATA }, { "spec", POD_SPEC } }
local SELECTOR = { { "matchLabels", "map" } }

local DEPLOYMENT_SPEC = {
	{ "replicas", "number" }, { "selector", SELECTOR }, { "template", TEMPLATE }, { "strategy", { { "type", "text" } } },
	{ "minReadySeconds", "number" }, { "revisionHistoryLimit", "number" }, { "paused", "bool" }, nil,
	{ "progressDeadlineSeconds", "number" },
}
local DEPLOYMENT_STATUS = {
	{ "observedGeneration", "number" }, { "replicas", "number" }, { "updatedReplicas", "number" }, { "availableReplicas", "number" },
	{ "unavailableReplicas", "number" }, nil, { "readyReplicas", "number" },
}

local RULE = {
	list("verbs", "text"), list("apiGroups", "text"), list("resources", "text"), list("resourceNames", "text"),
	list("nonResourceURLs", "text"),
}
local SUBJECT = { { "kind", "text" }, { "apiGroup", "text" }, { "name", "text" }, { "namespace", "text" } }
local ROLE_REF = { { "apiGroup", "text" }, { "kind", "text" }, { "name", "text" } }
local BINDING = { { "metadata", METADATA }, list("subjects", SUBJECT), { "roleRef", ROLE_REF } }

local KINDS = {
	["v1 ConfigMap"] = { { "metadata", METADATA }, { "data", "map" }, { "binaryData", "bytes_map" }, { "immutable", "bool" } },
	["v1 Secret"] = {
		{ "metadata", METADATA }, { "data", "bytes_map" }, { "type", "text" }, { "stringData", "map" }, { "immutable", "bool" } },
	["v1 Namespace"] = {
		{ "metadata", METADATA }, { "spec", { list("finalizers", "text") } }, { "status", { { "phase", "text" } } } },
	["v1 ServiceAccount"] = {
		{ "metadata", METADATA }, nil, list("imagePullSecrets", NAMED), { "automountServiceAccountToken", "bool" } },
	["authorization.k8s.io/v1 SelfSubjectAccessReview"] = {
		{ "metadata", METADATA },
		{ "spec", { { "resourceAttributes", RESOURCE_ATTRIBUTES }, { "nonResourceAttributes", { { "path", "text" }, { "verb", "text" } } } } },
		{ "status", REVIEW_STATUS } },
	["apps/v1 Deployment"] = { { "metadata", METADATA }, { "spec", DEPLOYMENT_SPEC }, { "status", DEPLOYMENT_STATUS } },
	["rbac.authorization.k8s.io/v1 Role"] = { { "metadata", METADATA }, list("rules", RULE) },
	["rbac.authorization.k8s.io/v1 ClusterRole"] = { { "metadata", METADATA }, list("rules", RULE) },
	["rbac.authorization.k8s.io/v1 RoleBinding"] = BINDING,
	["rbac.authorization.k8s.io/v1 ClusterRoleBinding"] = BINDING,
}

-- --- the wire ---

local function refuse(why)
	error({ protobuf = why }, 0)
end

local function varint(bytes, at)
	local value, factor = 0, 1
	while true do
		local byte = bytes:byte(at) or refuse "cut short"
		value, at, factor = value + byte % 128 * factor, at + 1, factor * 128
		if byte < 128 then
			return value >= 2 ^ 63 and value - 2 ^ 64 or value, at
		end
	end
end

-- Calls fn(number, value) for each field; value is a number, or the bytes of a longer one.
local function each_field(bytes, fn)
	local at = 1
	while at <= #bytes do
		local tag, value
		tag, at = varint(bytes, at)
		value, at = varint(bytes, at)
		if tag % 8 == 2 then
			if at + value - 1 > #bytes then
				refuse "cut short"
			end
			value, at = bytes:sub(at, at + value - 1), at + value
		elseif tag % 8 ~= 0 then
			refuse "an unknown wire type"
		end
		fn(math.floor(tag / 8), value)
	end
end

local decode

local function pair(bytes)
	local key, value = "", ""
	each_field(bytes, function(number, found)
		if number == 1 then
			key = found
		else
			value = found
		end
	end)
	return key, value
end

local function time(bytes)
	local seconds
	each_field(bytes, function(number, found)
		if number == 1 then
			seconds = found
		end
	end)
	return seconds and seconds >= 0 and os.date("!%Y-%m-%dT%H:%M:%SZ", seconds) or nil
end

local READERS = {
	text = function(value)
		return value ~= "" and value or nil
	end,
	number = function(value)
		return value
	end,
	bool = function(value)
		return value ~= 0 or nil
	end,
	time = time,
}

local function add(message, field, value)
	local name, how = field[1], field[2]
	if how == "map" or how == "bytes_map" then
		local key, text = pair(value)
		message[name] = message[name] or {}
		message[name][key] = how == "map" and text or base64.encode_padded(text)
	elseif field.list then
		message[name] = message[name] or k8s.array {}
		table.insert(message[name], type(how) == "table" and decode(value, how) or value)
	elseif type(how) == "table" then
		message[name] = decode(value, how)
	else
		message[name] = READERS[how](value)
	end
end

decode = function(bytes, fields)
	local message = {}
	each_field(bytes, function(number, value)
		local field = fields[number]
		if field then
			add(message, field, value)
		elseif value ~= "" and value ~= 0 then
			refuse("field " .. number .. " is not known here")
		end
	end)
	return message
end

local function envelope(bytes)
	local kind, raw = "", ""
	each_field(bytes, function(number, value)
		if number == 1 then
			local api_version, name = pair(value)
			kind = api_version .. " " .. name
		elseif number == 2 then
			raw = value
		end
	end)
	return kind, raw
end

--- An object out of a body; nil where it is of a kind, or has a field, that is not known here.
function protobuf.decode(body)
	if body:sub(1, 4) ~= "k8s\0" then
		return nil
	end
	local ok, result = pcall(function()
		local kind, raw = envelope(body:sub(5))
		local object = decode(raw, KINDS[kind] or refuse "another kind")
		object.apiVersion, object.kind = kind:match "^(.*) (.*)$"
		return object
	end)
	if ok then
		return result
	elseif type(result) == "table" and result.protobuf then
		return nil
	end
	error(result, 0)
end

return protobuf
