--- Merge patches (RFC 7386), and strategic ones, which know by the kind's shape how lists merge.
local k8s = require "perilune"
local fail = require "perilune.sandbox.fail"
local shape = require "perilune.sandbox.shape"
local tree = require "perilune.sandbox.tree"

local merge = {}

local null = k8s.null

--- RFC 7386: the value with the patch laid over it. Neither is changed.
function merge.plain(value, patch)
	if not tree.is_object(patch) then
		return patch
	end
	local result = tree.is_object(value) and tree.shallow(value) or {}
	for name, member in pairs(patch) do
		if member == null then
			result[name] = nil
		else
			result[name] = merge.plain(result[name], member)
		end
	end
	return result
end

-- --- strategic ---

local strategic

local function find_item(list, key, value)
	for i, item in ipairs(list) do
		if type(item) == "table" and item[key] == value then
			return i
		end
	end
end

local function without_directives(item)
	local copy = tree.shallow(item)
	copy["$patch"] = nil
	return copy
end

local function merge_item(result, item, list_shape)
	local key = list_shape.keys[1]
	if item[key] == nil then
		fail.raise(fail.status(422, "Invalid", "The request is invalid: map: " .. k8s.json.encode(item)
			.. " does not contain declared merge key: " .. key))
	end
	local at = find_item(result, key, item[key])
	if item["$patch"] == "delete" then
		if at then
			table.remove(result, at)
		end
	elseif at and item["$patch"] ~= "replace" then
		result[at] = strategic(result[at], item, list_shape.item or {})
	else
		result[at or #result + 1] = without_directives(item)
	end
end

local function has_replace(patch)
	for _, item in ipairs(patch) do
		if type(item) == "table" and item["$patch"] == "replace" then
			return true
		end
	end
	return false
end

local function identity(item, key)
	return type(item) == "table" and item[key] or item
end

-- The patch's items in its order; what it does not name keeps its place before those that stood behind it.
local function in_order(result, before, patch, key)
	local rank, named, rest, ordered = {}, {}, {}, k8s.array {}
	for i, item in ipairs(before) do
		rank[identity(item, key)] = i
	end
	local in_patch = {}
	for _, item in ipairs(patch) do
		in_patch[identity(item, key)] = #named + 1
		named[#named + 1] = false
	end
	for _, item in ipairs(result) do
		local place = in_patch[identity(item, key)]
		if place then
			named[place] = item
		else
			rest[#rest + 1] = item
		end
	end
	local at = 1
	for _, item in ipairs(named) do
		local mine = item and rank[identity(item, key)]
		while mine and rest[at] and rank[identity(rest[at], key)] < mine do
			ordered[#ordered + 1], at = rest[at], at + 1
		end
		if item then
			ordered[#ordered + 1] = item
		end
	end
	for i = at, #rest do
		ordered[#ordered + 1] = rest[i]
	end
	return ordered
end

local function merge_maps(value, patch, list_shape)
	local replaces = has_replace(patch)
	local before = tree.is_array(value) and not replaces and value or k8s.array {}
	local result = tree.shallow(before)
	for _, item in ipairs(patch) do
		if not (replaces and item["$patch"] == "replace") then
			merge_item(result, item, list_shape)
		end
	end
	return in_order(result, before, patch, list_shape.keys[1])
end

local function merge_set(value, patch)
	local before = tree.is_array(value) and value or k8s.array {}
	local result, known = tree.shallow(before), {}
	for _, item in ipairs(result) do
		known[item] = true
	end
	for _, item in ipairs(patch) do
		if not known[item] then
			known[item] = true
			result[#result + 1] = item
		end
	end
	return in_order(result, before, patch)
end

local function delete_primitives(result, name, values)
	local gone, kept = {}, k8s.array {}
	for _, value in ipairs(values) do
		gone[value] = true
	end
	for _, value in ipairs(result[name] or {}) do
		if not gone[value] then
			kept[#kept + 1] = value
		end
	end
	result[name] = kept
end

local function retain_keys(result, names)
	local kept = {}
	for _, name in ipairs(names) do
		kept[name] = true
	end
	for name in pairs(result) do
		if not kept[name] then
			result[name] = nil
		end
	end
end

local function merge_list(value, patch, list_shape)
	if list_shape.list == "map" then
		return merge_maps(value, patch, list_shape)
	elseif list_shape.list == "set" then
		return merge_set(value, patch)
	end
	return patch
end

local function merge_member(result, name, member, value_shape)
	local inner = shape.member(value_shape, name)
	if member == null then
		result[name] = nil
	elseif tree.is_array(member) then
		result[name] = merge_list(result[name], member, inner)
	else
		result[name] = strategic(result[name], member, inner)
	end
end

-- Orders the items of a list as $setElementOrder names them; those it does not name stay behind.
local function order_items(list, order, list_shape)
	local key, rank = (list_shape.keys or {})[1], {}
	for i, item in ipairs(order) do
		rank[type(item) == "table" and item[key] or item] = i
	end
	local places = {}
	for i, item in ipairs(list) do
		places[item] = (rank[type(item) == "table" and item[key] or item] or #order + 1) * 1e6 + i
	end
	table.sort(list, function(a, b)
		return places[a] < places[b]
	end)
end

local function apply_directive(result, name, member, value_shape)
	local directive, field = name:match "^%$(%w+)/?(.*)$"
	if directive == "retainKeys" then
		retain_keys(result, member)
	elseif directive == "deleteFromPrimitiveList" then
		delete_primitives(result, field, member)
	elseif directive == "setElementOrder" and result[field] then
		result[field] = tree.shallow(result[field])
		order_items(result[field], member, shape.member(value_shape, field))
	end
end

strategic = function(value, patch, value_shape)
	if not tree.is_object(patch) then
		return patch
	elseif patch["$patch"] == "delete" then
		return nil
	elseif patch["$patch"] == "replace" then
		return without_directives(patch)
	end
	local result = tree.is_object(value) and tree.shallow(value) or {}
	for name, member in pairs(patch) do
		if name:sub(1, 1) ~= "$" then
			merge_member(result, name, member, value_shape)
		end
	end
	for name, member in pairs(patch) do
		if name:sub(1, 1) == "$" and name ~= "$patch" then
			apply_directive(result, name, member, value_shape)
		end
	end
	return result
end

--- A strategic merge patch onto an object of that shape. Neither is changed.
function merge.strategic(value, patch, root)
	return strategic(value, patch, root)
end

return merge
