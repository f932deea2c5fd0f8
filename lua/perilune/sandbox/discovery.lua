--- What is served, as clients ask for it before all else: group by group, or all at once (aggregated discovery).
local k8s = require "perilune"
local fail = require "perilune.sandbox.fail"
local view = require "perilune.sandbox.view"

local discovery = {}

local AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

local function or_nil(list)
	return #list > 0 and k8s.array(list) or nil
end

-- --- group by group ---

local function main_row(resource)
	return {
		name = resource.plural, singularName = resource.singular, namespaced = resource.namespaced, kind = resource.kind,
		verbs = k8s.array(resource.verbs), shortNames = or_nil(resource.short), categories = or_nil(resource.categories),
	}
end

local function subresource_row(resource, name, kind, more)
	local row = {
		name = resource.plural .. "/" .. name, singularName = "", namespaced = resource.namespaced, kind = kind,
		verbs = k8s.array { "get", "patch", "update" },
	}
	for key, value in pairs(more or {}) do
		row[key] = value
	end
	return row
end

-- In the API server's order, which is another one for custom resources.
local function subresources_of(resource)
	local found = {}
	for _, name in ipairs(resource.custom and { "status", "scale" } or { "scale", "status" }) do
		if resource[name] then
			found[#found + 1] = name
		end
	end
	return found
end

local SCALE = { group = "autoscaling", version = "v1" }

local function rows_of(version)
	local rows = k8s.array {}
	for _, resource in ipairs(version.resources) do
		rows[#rows + 1] = main_row(resource)
		for _, name in ipairs(subresources_of(resource)) do
			rows[#rows + 1] = name == "status" and subresource_row(resource, name, resource.kind)
				or subresource_row(resource, name, "Scale", SCALE)
		end
	end
	return rows
end

local function group_version(group, version)
	return group.name == "" and version.name or group.name .. "/" .. version.name
end

local function group_object(group, with_kind)
	local versions = k8s.array {}
	for i, version in ipairs(group.versions) do
		versions[i] = { groupVersion = group_version(group, version), version = version.name }
	end
	return {
		kind = with_kind and "APIGroup" or nil, apiVersion = with_kind and "v1" or nil,
		name = group.name, versions = versions, preferredVersion = versions[1],
	}
end

function discovery.resources(server, group_name, version_name)
	local group, version = server.registry:group(group_name), server.registry:version(group_name, version_name)
	if not version then
		fail.not_a_path()
	end
	return {
		kind = "APIResourceList", apiVersion = group.name ~= "" and "v1" or nil,
		groupVersion = group_version(group, version), resources = rows_of(version),
	}
end

function discovery.group(server, name)
	local group = server.registry:group(name)
	if not group or name == "" then
		fail.not_a_path()
	end
	return group_object(group, true)
end

-- --- all at once ---

-- Built-in kinds say only their name when they are of the group and version that they are listed in.
local function response_kind(resource, kind)
	if kind == "Scale" then
		return { group = "autoscaling", version = "v1", kind = "Scale" }
	elseif not resource.custom then
		return { group = "", version = "", kind = kind }
	end
	return { group = resource.group, version = resource.version, kind = kind }
end

local function subresources(resource)
	local found = {}
	for i, name in ipairs(subresources_of(resource)) do
		found[i] = {
			subresource = name, responseKind = response_kind(resource, name == "scale" and "Scale" or resource.kind),
			verbs = k8s.array { "get", "patch", "update" },
		}
	end
	return or_nil(found)
end

local function aggregated_version(version)
	local resources = k8s.array {}
	for i, resource in ipairs(version.resources) do
		resources[i] = {
			resource = resource.plural, responseKind = response_kind(resource, resource.kind),
			scope = resource.namespaced and "Namespaced" or "Cluster", singularResource = resource.singular,
			verbs = k8s.array(resource.verbs), shortNames = or_nil(resource.short),
			categories = or_nil(resource.categories), subresources = subresources(resource),
		}
	end
	return { version = version.name, resources = resources, freshness = "Current" }
end

local function aggregated_group(group)
	local versions = k8s.array {}
	for i, version in ipairs(group.versions) do
		versions[i] = aggregated_version(version)
	end
	return { metadata = { name = group.name ~= "" and group.name or nil }, versions = versions }
end

-- --- /api and /apis ---

local function wants_aggregated(request)
	for _, range in ipairs(view.ranges(request.headers.accept)) do
		if range.as == "APIGroupDiscoveryList" and range.g == "apidiscovery.k8s.io" and range.v == "v2" then
			return true
		elseif range.type == "application/json" and not range.as then
			return false
		end
	end
	return false
end

local function groups_of(server, core)
	local found = {}
	for _, group in ipairs(server.registry.groups) do
		if (group.name == "") == core then
			found[#found + 1] = group
		end
	end
	return found
end

local function aggregated(groups)
	local items = k8s.array {}
	for i, group in ipairs(groups) do
		items[i] = aggregated_group(group)
	end
	return {
		status = 200, content_type = AGGREGATED,
		body = k8s.json.encode { kind = "APIGroupDiscoveryList", apiVersion = "apidiscovery.k8s.io/v2", metadata = {}, items = items },
	}
end

--- /api: the core group's versions.
function discovery.core(server, request)
	if wants_aggregated(request) then
		return aggregated(groups_of(server, true))
	end
	return { status = 200, body = k8s.json.encode {
		kind = "APIVersions", versions = k8s.array { "v1" },
		serverAddressByClientCIDRs = k8s.array { { clientCIDR = "0.0.0.0/0", serverAddress = server.address } },
	} }
end

--- /apis: the other groups.
function discovery.groups(server, request)
	if wants_aggregated(request) then
		return aggregated(groups_of(server, false))
	end
	local groups = k8s.array {}
	for i, group in ipairs(groups_of(server, false)) do
		groups[i] = group_object(group, false)
	end
	return { status = 200, body = k8s.json.encode { kind = "APIGroupList", apiVersion = "v1", groups = groups } }
end

return discovery
