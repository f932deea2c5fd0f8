--- How the parts of an object merge: which lists are maps by key, which are sets, which values are taken whole.
--
-- A shape: { list = "map" | "set" | nil (taken whole), keys = {…}, atomic = true, item = shape of the items,
-- fields = name to shape, structs = names of members that are there even when empty }. An unknown member has the empty
-- shape: an object that merges by member, or a list that is taken whole.
local shape = {}

local EMPTY = {}

local function map_list(item, ...)
	return { list = "map", keys = { ... }, item = item or EMPTY }
end

local SET = { list = "set" }
local ATOMIC = { atomic = true }
local SELECTOR = ATOMIC

local CONDITIONS = map_list(nil, "type")

local METADATA = { fields = { finalizers = SET, ownerReferences = { list = "map", keys = { "uid" }, item = ATOMIC } } }

local CONTAINER = { fields = {
	ports = map_list(nil, "containerPort", "protocol"), env = { list = "map", keys = { "name" }, item = { fields = {
		valueFrom = { fields = { configMapKeyRef = ATOMIC, secretKeyRef = ATOMIC, fieldRef = ATOMIC, resourceFieldRef = ATOMIC } } } } },
	volumeMounts = map_list(nil, "mountPath"), volumeDevices = map_list(nil, "devicePath"),
	resources = { fields = { claims = map_list(nil, "name") } },
} }

local POD_SPEC = { fields = {
	containers = map_list(CONTAINER, "name"), initContainers = map_list(CONTAINER, "name"),
	ephemeralContainers = map_list(CONTAINER, "name"), volumes = map_list(nil, "name"),
	imagePullSecrets = map_list(ATOMIC, "name"), hostAliases = map_list(nil, "ip"), schedulingGates = map_list(nil, "name"),
	topologySpreadConstraints = map_list({ fields = { labelSelector = SELECTOR } }, "topologyKey", "whenUnsatisfiable"),
	nodeSelector = ATOMIC,
} }

local TEMPLATE = { fields = { metadata = METADATA, spec = POD_SPEC } }

local function workload(more)
	local fields = { selector = SELECTOR, template = TEMPLATE }
	for name, value in pairs(more or {}) do
		fields[name] = value
	end
	return { fields = fields }
end

local WITH_CONDITIONS = { fields = { conditions = CONDITIONS } }

local KINDS = {
	["/pods"] = { spec = POD_SPEC, status = { fields = {
		conditions = CONDITIONS, podIPs = map_list(nil, "ip"), hostIPs = ATOMIC } } },
	["/services"] = { spec = { fields = { ports = map_list(nil, "port", "protocol"), selector = ATOMIC } }, status = WITH_CONDITIONS },
	["/serviceaccounts"] = { secrets = map_list(nil, "name"), imagePullSecrets = ATOMIC },
	["/nodes"] = { spec = { fields = { podCIDRs = SET } }, status = { fields = {
		conditions = CONDITIONS, addresses = map_list(nil, "type") } } },
	["/namespaces"] = { spec = { fields = { finalizers = SET } }, status = WITH_CONDITIONS },
	["/replicationcontrollers"] = { spec = workload(), status = WITH_CONDITIONS },
	["/persistentvolumeclaims"] = { spec = { fields = { selector = SELECTOR } }, status = WITH_CONDITIONS },
	["apps/deployments"] = { spec = workload(), status = WITH_CONDITIONS },
	["apps/replicasets"] = { spec = workload(), status = WITH_CONDITIONS },
	["apps/daemonsets"] = { spec = workload(), status = WITH_CONDITIONS },
	["apps/statefulsets"] = { spec = workload(), status = WITH_CONDITIONS },
	["batch/jobs"] = { spec = workload(), status = { fields = { conditions = ATOMIC } } },
	["batch/cronjobs"] = { spec = { fields = { jobTemplate = { fields = { metadata = METADATA, spec = workload() } } } } },
	["policy/poddisruptionbudgets"] = { spec = { fields = { selector = SELECTOR } }, status = WITH_CONDITIONS },
	["networking.k8s.io/networkpolicies"] = { spec = { fields = { podSelector = SELECTOR } } },
	["apiextensions.k8s.io/customresourcedefinitions"] = { status = WITH_CONDITIONS },
}

-- Members that the server's typed objects have from the start, so that nobody owns the empty ones.
local STRUCTS = {
	metadata = true, spec = true, status = true, template = true, strategy = true, updateStrategy = true, jobTemplate = true,
	containers = true, names = true,
}

local STRUCTS_OF = {
	["apiextensions.k8s.io/customresourcedefinitions"] = setmetatable({ conditions = true }, { __index = STRUCTS }),
}

--- The shape of a resource's objects.
function shape.of(resource)
	if not resource.shape then
		local fields = { metadata = METADATA }
		for name, value in pairs(KINDS[resource.storage] or {}) do
			fields[name] = value
		end
		if resource.schema then
			for name, value in pairs(shape.of_schema(resource.schema).fields or {}) do
				fields[name] = name == "metadata" and METADATA or value
			end
		end
		resource.shape = { fields = fields, structs = not resource.custom and (STRUCTS_OF[resource.storage] or STRUCTS) or nil }
	end
	return resource.shape
end

--- From an OpenAPI schema with its x-kubernetes extensions.
function shape.of_schema(schema)
	if type(schema) ~= "table" then
		return EMPTY
	end
	local made = { atomic = schema["x-kubernetes-map-type"] == "atomic" or nil }
	local kind = schema["x-kubernetes-list-type"]
	if kind == "map" or kind == "set" then
		made.list, made.keys = kind, schema["x-kubernetes-list-map-keys"]
		made.item = shape.of_schema(schema.items)
	end
	for name, property in pairs(schema.properties or {}) do
		made.fields = made.fields or {}
		made.fields[name] = shape.of_schema(property)
	end
	if type(schema.additionalProperties) == "table" then
		made.others = shape.of_schema(schema.additionalProperties)
	end
	return made
end

--- The shape of a member.
function shape.member(parent, name)
	return parent.fields and parent.fields[name] or parent.others or EMPTY
end

--- Whether the member is a struct that is always there. Passed down from the root.
function shape.is_struct(root, name)
	return root.structs and root.structs[name] or false
end

local PROTOCOL = { protocol = "TCP" }

--- The key of an item of a map list, as a table; nil where one is missing.
function shape.item_key(list, item)
	local key = {}
	for _, name in ipairs(list.keys) do
		local value = type(item) == "table" and item[name]
		if value == nil then
			value = PROTOCOL[name]
		end
		if value == nil then
			return nil
		end
		key[name] = value
	end
	return key
end

return shape
