-- mirror: keeps copies of chosen ConfigMaps in the namespaces that they ask for.
--
-- A source is a ConfigMap with the label example.com/mirror: "yes"; its annotation example.com/mirror-to is a selector of
-- namespaces by their labels. A copy has the source's name and data, and the label example.com/mirror-of: the source's
-- namespace. So each copy says what it is a copy of, and copies whose source went while nobody looked are found at the start:
-- that is why no finalizer is needed. (An ownerReference can't do it, as it does not reach into another namespace.)
local k8s = require "perilune"

local SOURCE, SELECTOR, COPY = "example.com/mirror", "example.com/mirror-to", "example.com/mirror-of"

local sources = k8s.informer { apiVersion = "v1", kind = "ConfigMap", label_selector = SOURCE .. "=yes" }
local copies = k8s.informer { apiVersion = "v1", kind = "ConfigMap", label_selector = COPY }
local namespaces = k8s.informer { apiVersion = "v1", kind = "Namespace", metadata_only = true }

k8s.needs { { apiGroups = "", resources = "configmaps", verbs = { "create", "update", "delete" } } }

local function source_of(copy)
	return { namespace = copy.metadata.labels[COPY], name = copy.metadata.name }
end

copies:add_index {
	source = function(copy)
		local source = source_of(copy)
		return source.namespace .. "/" .. source.name
	end,
}

-- The names of the namespaces that a source asks for. Into one that is being deleted nothing can be put.
local function targets_of(source)
	local selector, names = k8s.path(source, "metadata.annotations['" .. SELECTOR .. "']"), {}
	if not selector then
		return names
	end
	local ok, chosen = pcall(namespaces.list, namespaces, { label_selector = selector, fields = "metadata.deletionTimestamp" })
	if not ok then
		k8s.terminal(chosen) -- the selector is no selector; a retry would not mend it
	end
	for _, namespace in ipairs(chosen) do
		local name = namespace.metadata.name
		names[name] = name ~= source.metadata.namespace and not namespace.metadata.deletionTimestamp or nil
	end
	return names
end

-- Never over a ConfigMap that is no copy: create fails where there is one. Over a copy only where it is not as it should be,
-- and with the version that was looked at.
local function write(source, namespace)
	local copy = copies:get(namespace, source.metadata.name)
	if copy and source_of(copy).namespace ~= source.metadata.namespace then
		return nil, namespace .. " has a copy of " .. source_of(copy).namespace .. "'s ConfigMap of that name"
	elseif not copy then
		return k8s.create {
			apiVersion = "v1",
			kind = "ConfigMap",
			metadata = { namespace = namespace, name = source.metadata.name, labels = { [COPY] = source.metadata.namespace } },
			data = source.data,
			binaryData = source.binaryData,
		}
	elseif not (k8s.equal(copy.data, source.data) and k8s.equal(copy.binaryData, source.binaryData)) then
		copy.data, copy.binaryData = source.data, source.binaryData
		return k8s.update(copy)
	end
end

local function delete(copy)
	local done, err = k8s.delete(copy, { preconditions = { uid = copy.metadata.uid } })
	return done, err and err.reason ~= "NotFound" and err or nil
end

-- One namespace that refuses its copy keeps no other from having its own. After a conflict the key comes back soon anyway.
local function reconcile(request, context)
	local source, failure = sources:get(request), nil
	local targets = source and targets_of(source) or {}
	local function note(what, namespace, done, err)
		if done then
			context.log.info(what, { target = namespace })
		elseif err and err.reason ~= "Conflict" then
			context.log.warn("a copy is not as it should be", { target = namespace, error = err })
		end
		failure = err or failure
	end
	for namespace in pairs(targets) do
		note("copied", namespace, write(source, namespace))
	end
	for _, copy in ipairs(copies:list { index = { source = request.namespace .. "/" .. request.name } }) do
		if not targets[copy.metadata.namespace] then
			note("copy deleted", copy.metadata.namespace, delete(copy))
		end
	end
	return nil, failure
end

-- A namespace that comes, or whose labels change, may concern each source; there are few of both.
local function all_sources()
	return sources:list { fields = "metadata.name" }
end

k8s.controller {
	name = "mirror",
	watch = sources,
	map = { [copies] = source_of, [namespaces] = all_sources },
	reconcile = reconcile,
}
