--- Which resources are served: built-in ones from the start, custom ones while their definition lives.
--
-- A resource: group, version, api_version, kind, plural, singular, list_kind, namespaced, short, categories, verbs,
-- status, scale, generation, returns, versioned; `storage` is where its objects are kept, the same for all versions of a
-- kind. A custom one also has `custom` (its definition) and `schema`.
local kinds = require "perilune.sandbox.kinds"

local registry = {}
registry.__index = registry

local VERBS = { "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch" }

local CUSTOM_VERBS = { "delete", "deletecollection", "get", "list", "patch", "create", "update", "watch" }

local function complete(row)
	row.api_version = row.group == "" and row.version or row.group .. "/" .. row.version
	row.singular = row.singular or row.kind:lower()
	row.list_kind = row.list_kind or row.kind .. "List"
	row.storage = row.group .. "/" .. row.plural
	row.qualified = row.group == "" and row.plural or row.plural .. "." .. row.group
	row.verbs = row.create and { "create" } or row.custom and CUSTOM_VERBS or VERBS
	return row
end

function registry.new()
	local self = setmetatable({ groups = {}, by_name = {} }, registry)
	for _, row in ipairs(kinds) do
		local copy = {}
		for name, value in pairs(row) do
			copy[name] = value
		end
		self:add(copy)
	end
	return self
end

local function find(list, name)
	for i, entry in ipairs(list) do
		if entry.name == name then
			return entry, i
		end
	end
end

local function find_or_add(list, name)
	local entry = find(list, name)
	if not entry then
		entry = { name = name }
		list[#list + 1] = entry
	end
	return entry
end

--- The group with its versions in order of preference; nil where it is not served.
function registry:group(name)
	return (find(self.groups, name))
end

function registry:version(group, version)
	local found = self:group(group)
	return found and (find(found.versions, version))
end

function registry:add(row)
	local resource = complete(row)
	local group = find_or_add(self.groups, row.group)
	group.versions = group.versions or {}
	local version = find_or_add(group.versions, row.version)
	version.resources = version.resources or {}
	version.resources[#version.resources + 1] = resource
	self.by_name[("%s/%s/%s"):format(row.group, row.version, row.plural)] = resource
	return resource
end

local function drop_resources(version, matches)
	for i = #version.resources, 1, -1 do
		if matches(version.resources[i]) then
			table.remove(version.resources, i)
		end
	end
end

--- Takes away every resource for which matches(resource) holds, and what is empty then.
function registry:remove(matches)
	for i = #self.groups, 1, -1 do
		local group = self.groups[i]
		for j = #group.versions, 1, -1 do
			drop_resources(group.versions[j], matches)
			if #group.versions[j].resources == 0 then
				table.remove(group.versions, j)
			end
		end
		if #group.versions == 0 then
			table.remove(self.groups, i)
		end
	end
	for name, resource in pairs(self.by_name) do
		if matches(resource) then
			self.by_name[name] = nil
		end
	end
end

function registry:find(group, version, plural)
	return self.by_name[("%s/%s/%s"):format(group, version, plural)]
end

--- The resource of an apiVersion and kind.
function registry:of_kind(api_version, kind)
	for _, resource in pairs(self.by_name) do
		if resource.api_version == api_version and resource.kind == kind then
			return resource
		end
	end
end

--- The names of the kinds of an apiVersion.
function registry:kinds_of(api_version)
	local names = {}
	for _, resource in pairs(self.by_name) do
		if resource.api_version == api_version then
			names[#names + 1] = resource.kind
		end
	end
	table.sort(names)
	return names
end

--- Each resource once, whatever its versions.
function registry:storages()
	local found = {}
	for _, resource in pairs(self.by_name) do
		found[resource.storage] = resource
	end
	return found
end

return registry
