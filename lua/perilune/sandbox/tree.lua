--- Values as JSON has them: copies, comparison, paths. Tables made of JSON keep their array mark.
local k8s = require "perilune"

local tree = {}

local null = k8s.null

function tree.is_null(value)
	return value == nil or value == null
end

function tree.is_array(value)
	return type(value) == "table" and (getmetatable(value) == "array" or #value > 0)
end

function tree.is_object(value)
	return type(value) == "table" and not tree.is_array(value)
end

function tree.copy(value)
	if type(value) ~= "table" then
		return value
	end
	local result = {}
	for key, member in pairs(value) do
		result[key] = tree.copy(member)
	end
	return getmetatable(value) == "array" and k8s.array(result) or result
end

--- The first level only.
function tree.shallow(value)
	local result = {}
	for key, member in pairs(value or {}) do
		result[key] = member
	end
	return getmetatable(value) == "array" and k8s.array(result) or result
end

function tree.equal(a, b)
	if type(a) ~= "table" or type(b) ~= "table" then
		return a == b
	end
	if a == b then
		return true
	end
	if tree.is_array(a) ~= tree.is_array(b) then
		return false
	end
	for key, value in pairs(a) do
		if not tree.equal(value, b[key]) then
			return false
		end
	end
	for key in pairs(b) do
		if a[key] == nil then
			return false
		end
	end
	return true
end

--- tree.at(pod, "spec", "nodeName"); nil where there is nothing.
function tree.at(value, ...)
	for i = 1, select("#", ...) do
		if type(value) ~= "table" then
			return nil
		end
		value = value[(select(i, ...))]
	end
	if value == null then
		return nil
	end
	return value
end

--- The keys of a table in order.
function tree.keys(value)
	local keys = {}
	for key in pairs(value) do
		keys[#keys + 1] = key
	end
	table.sort(keys)
	return keys
end

--- Drops members that are null, as the typed objects of the API server do.
function tree.drop_nulls(value)
	if type(value) ~= "table" then
		return value
	end
	for key, member in pairs(value) do
		if member == null and not tree.is_array(value) then
			value[key] = nil
		else
			tree.drop_nulls(member)
		end
	end
	return value
end

local METADATA = { "labels", "annotations", "finalizers", "ownerReferences" }
local CONTENT = { "data", "binaryData", "stringData" }

local function drop_empty(object, names)
	for _, name in ipairs(names) do
		if type(object[name]) == "table" and next(object[name]) == nil then
			object[name] = nil
		end
	end
end

--- As typed objects read it: null and empty members of the metadata are as if they were not there; of ConfigMaps and
-- Secrets (typed = true) also those of the content.
function tree.normalise(object, typed)
	tree.drop_nulls(object)
	if type(object.metadata) == "table" then
		drop_empty(object.metadata, METADATA)
	end
	if typed then
		drop_empty(object, CONTENT)
	end
	return object
end

return tree
