-- label-sync: copies a namespace's labels that begin with a prefix to every ConfigMap in it.
--
-- Labels with that prefix belong to this script: what the namespace doesn't have goes from its ConfigMaps too. All other
-- labels are left alone. Options:
--   --set prefix=team.example.com/   instead of example.com/
--   --set resync=60                  seconds after which all is looked at again, in the cache (300)
local k8s = require "perilune"

local prefix = k8s.config.prefix or "example.com/"
assert(prefix:match "^[%w.-]+/$", "prefix must be a domain name and a slash, such as example.com/")

-- Only metadata is watched, so that the cache doesn't hold what is in the ConfigMaps. Both caches are full before the
-- first handler runs: no ConfigMap loses its labels because its namespace had not been listed yet.
local namespaces = k8s.informer { apiVersion = "v1", kind = "Namespace", metadata_only = true }
local configmaps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", metadata_only = true }

k8s.needs { { apiGroups = "", resources = "configmaps", verbs = "patch" } }

local function is_ours(label)
	return label:sub(1, #prefix) == prefix
end

-- What a merge patch of the labels must say: k8s.null takes one away. Nil when all is right.
local function difference(wanted, found)
	local changes = {}
	for label, value in pairs(wanted) do
		if is_ours(label) and found[label] ~= value then
			changes[label] = value
		end
	end
	for label in pairs(found) do
		if is_ours(label) and wanted[label] == nil then
			changes[label] = k8s.null
		end
	end
	return next(changes) and changes
end

-- A conflict means that somebody changed the ConfigMap after the version that we looked at, and NotFound that it is
-- gone. In both cases the event that says so is on its way, and its handler decides anew.
local function report(configmap, err)
	local fields = { namespace = configmap.metadata.namespace, name = configmap.metadata.name }
	if not err then
		k8s.log.info("labels synced", fields)
	elseif err.reason ~= "Conflict" and err.reason ~= "NotFound" then
		fields.error = err
		k8s.log.error("labels not synced, the next resync tries again", fields)
	end
end

local function sync(configmap)
	local namespace = namespaces:get(configmap.metadata.namespace)
	if not namespace or namespace.metadata.deletionTimestamp then
		return
	end
	local changes = difference(namespace.metadata.labels or {}, configmap.metadata.labels or {})
	if changes then
		local _, err = k8s.patch(configmap, {
			metadata = { labels = changes, resourceVersion = configmap.metadata.resourceVersion },
		})
		report(configmap, err)
	end
end

configmaps:add_event_handler {
	fields = { "metadata.labels" },
	resync = assert(tonumber(k8s.config.resync or 300), "resync must be a number of seconds"),
	add = sync,
	update = sync,
}

local function sync_all(namespace)
	local inside = { namespace = namespace.metadata.name, fields = { "metadata.labels" } }
	for _, configmap in ipairs(configmaps:list(inside)) do
		sync(configmap)
	end
end

namespaces:add_event_handler {
	fields = { "metadata.labels" },
	add = function(namespace, event)
		if not event.initial then -- at start the ConfigMaps' own adds see to them
			sync_all(namespace)
		end
	end,
	update = sync_all,
}
