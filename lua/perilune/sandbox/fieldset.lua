--- Sets of an object's fields, as managedFields keep them.
--
-- A node: { member = whether the field itself belongs to the set, kids = { element = node } }. Elements are those of
-- fieldsV1: "f:name" a member, 'k:{"name":"main"}' an item of a map list, 'v:"x"' one of a set.
local k8s = require "perilune"
local shape = require "perilune.sandbox.shape"
local tree = require "perilune.sandbox.tree"

local fieldset = {}

local function node(member)
	return { member = member or false, kids = {} }
end

function fieldset.is_empty(set)
	return not set or (not set.member and next(set.kids) == nil)
end

local is_empty = fieldset.is_empty

-- --- to and from JSON ---

function fieldset.decode(json)
	local set = node()
	for element, child in pairs(json or {}) do
		if element == "." then
			set.member = true
		elseif next(child) == nil then
			set.kids[element] = node(true)
		else
			set.kids[element] = fieldset.decode(child)
		end
	end
	return set
end

function fieldset.encode(set)
	local json = k8s.object {}
	for element, child in pairs(set.kids) do
		json[element] = fieldset.encode(child)
		if child.member and next(child.kids) then
			json[element]["."] = k8s.object {}
		end
	end
	return json
end

-- --- elements ---

local function key_element(key)
	local parts = {}
	for i, name in ipairs(tree.keys(key)) do
		parts[i] = k8s.json.encode(name) .. ":" .. k8s.json.encode(key[name])
	end
	return "k:{" .. table.concat(parts, ",") .. "}"
end

local function value_element(value)
	return "v:" .. k8s.json.encode(value)
end

--- Items of a list by element: { element = item }, elements in order; nil where an item has no key.
function fieldset.items(list, list_shape)
	local by_element, order = {}, {}
	for _, item in ipairs(list) do
		local element
		if list_shape.list == "set" then
			element = value_element(item)
		else
			local key = shape.item_key(list_shape, item)
			if not key then
				return nil
			end
			element = key_element(key)
		end
		if not by_element[element] then
			order[#order + 1] = element
		end
		by_element[element] = item
	end
	return by_element, order
end

--- How a value merges: "object", "map", "set", or "whole".
function fieldset.kind_of(value, value_shape)
	if type(value) ~= "table" or value_shape.atomic then
		return "whole"
	elseif not tree.is_array(value) then
		return "object"
	end
	return value_shape.list or "whole"
end

local kind_of = fieldset.kind_of

-- --- what changed ---

local changed

local function changed_members(old, new, new_shape, root)
	local set = node()
	for name, value in pairs(new) do
		local child = changed(type(old) == "table" and old[name] or nil, value, shape.member(new_shape, name), root,
			shape.is_struct(root, name))
		if child then
			set.kids["f:" .. name] = child
		end
	end
	return set
end

local function changed_items(old, new, new_shape, root)
	local items = fieldset.items(new, new_shape)
	local before = tree.is_array(old) and fieldset.items(old, new_shape) or {}
	if not items then
		return node(true)
	end
	local set = node()
	for element, item in pairs(items) do
		local child = changed(before[element], item, new_shape.item or {}, root)
		if child and before[element] == nil then
			child.member = true
		end
		set.kids[element] = child
	end
	return set
end

-- The fields of new that old has not, or has otherwise; nil for none.
changed = function(old, new, new_shape, root, is_struct)
	if tree.equal(old, new) then
		return nil
	end
	local kind = kind_of(new, new_shape)
	local set
	if kind == "object" then
		set = changed_members(tree.is_object(old) and old or nil, new, new_shape, root)
	elseif kind == "whole" then
		return node(true)
	else
		set = changed_items(old, new, new_shape, root)
	end
	if type(old) ~= "table" and not is_struct then
		set.member = true
	end
	return not is_empty(set) and set or nil
end

--- The fields that a write changed or added.
function fieldset.changed(old, new, root)
	return changed(old or {}, new, root, root) or node()
end

-- --- what a configuration says ---

local function configured(value, value_shape, undeclared)
	local kind, set = kind_of(value, value_shape), node(undeclared)
	if kind == "whole" or next(value) == nil then
		return node(true)
	elseif kind == "object" then
		for name, member in pairs(value) do
			set.kids["f:" .. name] = configured(member, shape.member(value_shape, name),
				value_shape.others ~= nil and not (value_shape.fields or {})[name])
		end
		return set
	end
	local items = fieldset.items(value, value_shape)
	if not items then
		return node(true)
	end
	for element, item in pairs(items) do
		set.kids[element] = kind == "set" and node(true) or configured(item, value_shape.item or {}, true)
	end
	return set
end

--- The fields that an applied configuration has.
function fieldset.configured(value, root)
	return configured(value, root)
end

-- --- algebra ---

function fieldset.union(a, b)
	local set = node(a.member or b.member)
	for element, child in pairs(a.kids) do
		set.kids[element] = b.kids[element] and fieldset.union(child, b.kids[element]) or child
	end
	for element, child in pairs(b.kids) do
		set.kids[element] = set.kids[element] or child
	end
	return set
end

local function combine(a, b, member, keep_missing)
	local set = node(member(a.member, b.member))
	for element, child in pairs(a.kids) do
		local other = b.kids[element]
		local made = nil
		if other then
			made = combine(child, other, member, keep_missing)
		elseif keep_missing then
			made = child
		end
		if not is_empty(made) then
			set.kids[element] = made
		end
	end
	return set
end

--- What is in a and not in b.
function fieldset.minus(a, b)
	return combine(a, b, function(x, y)
		return x and not y
	end, true)
end

--- What is in both.
function fieldset.both(a, b)
	return combine(a, b, function(x, y)
		return x and y
	end, false)
end

-- --- a set against a value ---

--- The value of a kid: value, shape. nil where there is none.
function fieldset.child(value, value_shape, element)
	if type(value) ~= "table" then
		return nil
	end
	local name = element:match "^f:(.*)$"
	if name then
		return value[name], shape.member(value_shape, name)
	elseif not tree.is_array(value) then
		return nil
	end
	local items = value_shape.list and fieldset.items(value, value_shape)
	return items and items[element], value_shape.item or {}
end

--- The part of the set that the value has.
function fieldset.existing(set, value, value_shape)
	local kept = node(set.member)
	for element, child in pairs(set.kids) do
		local inner, inner_shape = fieldset.child(value, value_shape, element)
		if inner ~= nil then
			local part = fieldset.existing(child, inner, inner_shape)
			if not is_empty(part) then
				kept.kids[element] = part
			end
		end
	end
	return kept
end

--- A copy of the list with another value for an item, or without it.
function fieldset.replace_item(list, list_shape, element, value)
	local items, order = fieldset.items(list, list_shape)
	local result = k8s.array {}
	for _, one in ipairs(order or {}) do
		local item = items[one]
		if one == element then
			item = value
		end
		if item ~= nil then
			result[#result + 1] = item
		end
	end
	return result
end

-- --- for people ---

local function element_text(element)
	local kind, rest = element:match "^(%a):(.*)$"
	if kind == "f" then
		return "." .. rest
	elseif kind == "v" then
		return "[=" .. rest .. "]"
	end
	local key, parts = k8s.json.decode(rest), {}
	for i, name in ipairs(tree.keys(key)) do
		parts[i] = name .. "=" .. k8s.json.encode(key[name])
	end
	return "[" .. table.concat(parts, ",") .. "]"
end

--- The members of the set as texts such as '.spec.containers[name="main"].image', in order.
function fieldset.texts(set, prefix, found)
	found = found or {}
	if set.member then
		found[#found + 1] = prefix
	end
	for _, element in ipairs(tree.keys(set.kids)) do
		fieldset.texts(set.kids[element], (prefix or "") .. element_text(element), found)
	end
	return found
end

return fieldset
