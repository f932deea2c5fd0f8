--- JSON patches (RFC 6902): a list of operations onto a copy of a value.
local k8s = require "perilune"
local tree = require "perilune.sandbox.tree"

local json_patch = {}

local function fail(text)
	error({ json_patch = text }, 0)
end

local function parse_pointer(pointer)
	if type(pointer) ~= "string" or (pointer ~= "" and pointer:sub(1, 1) ~= "/") then
		fail("a path must begin with a slash")
	end
	local parts = {}
	for part in pointer:gmatch "/([^/]*)" do
		parts[#parts + 1] = part:gsub("~1", "/"):gsub("~0", "~")
	end
	return parts
end

-- The place of an item; for adding also behind the last one.
local function index_of(list, part, adding)
	if part == "-" and adding then
		return #list + 1
	end
	local index = part:match "^%d+$" and tonumber(part) + 1
	if not index or index > #list + (adding and 1 or 0) then
		return nil
	end
	return index
end

local function member(value, part)
	if type(value) ~= "table" then
		return nil
	elseif tree.is_array(value) then
		local index = index_of(value, part)
		return index and value[index]
	end
	return value[part]
end

local function parent_of(value, parts, pointer, verb)
	for i = 1, #parts - 1 do
		value = member(value, parts[i])
		if type(value) ~= "table" then
			fail(("%s operation does not apply: doc is missing path: %s: missing value"):format(verb, pointer))
		end
	end
	return value, parts[#parts]
end

local function find(value, pointer)
	for _, part in ipairs(parse_pointer(pointer)) do
		value = member(value, part)
		if value == nil then
			return nil
		end
	end
	return value
end

local function add(document, pointer, value, verb)
	local parts = parse_pointer(pointer)
	if #parts == 0 then
		return value
	end
	local parent, last = parent_of(document, parts, pointer, verb)
	if tree.is_array(parent) then
		local index = index_of(parent, last, true)
		if not index then
			fail(("%s operation does not apply: doc is missing path: %s: missing value"):format(verb, pointer))
		end
		table.insert(parent, index, value)
	else
		parent[last] = value
	end
	return document
end

local function remove(document, pointer, verb)
	local parent, last = parent_of(document, parse_pointer(pointer), pointer, verb)
	if member(parent, last) == nil then
		fail(("%s operation does not apply: Unable to remove nonexistent key: %s: missing value"):format(verb, last))
	end
	if tree.is_array(parent) then
		table.remove(parent, index_of(parent, last))
	else
		parent[last] = nil
	end
	return document
end

local OPERATIONS = {}

function OPERATIONS.add(document, operation)
	return add(document, operation.path, operation.value, "add")
end

function OPERATIONS.remove(document, operation)
	return remove(document, operation.path, "remove")
end

function OPERATIONS.replace(document, operation)
	local parts = parse_pointer(operation.path)
	if #parts == 0 then
		return operation.value
	end
	local parent, last = parent_of(document, parts, operation.path, "replace")
	if member(parent, last) == nil then
		fail(("replace operation does not apply: doc is missing key: %s: missing value"):format(operation.path))
	end
	parent[tree.is_array(parent) and index_of(parent, last) or last] = operation.value
	return document
end

function OPERATIONS.move(document, operation)
	local value = find(document, operation.from)
	document = remove(document, operation.from, "move")
	return add(document, operation.path, value, "move")
end

function OPERATIONS.copy(document, operation)
	local value = find(document, operation.from)
	if value == nil then
		fail(("copy operation does not apply: doc is missing from path: %s: missing value"):format(operation.from))
	end
	return add(document, operation.path, tree.copy(value), "copy")
end

function OPERATIONS.test(document, operation)
	local value = find(document, operation.path)
	if not tree.equal(value == nil and k8s.null or value, operation.value) then
		fail(("testing path %s failed: test failed"):format(operation.path))
	end
	return document
end

local function apply_all(document, operations)
	for _, operation in ipairs(operations) do
		local apply = OPERATIONS[operation.op]
		if not apply then
			fail(("Unexpected kind: %s"):format(tostring(operation.op)))
		end
		document = apply(document, tree.copy(operation))
	end
	return document
end

--- The patched copy; or nil and what is wrong.
function json_patch.apply(value, operations)
	local ok, result = pcall(apply_all, tree.copy(value), operations)
	if ok then
		return result
	elseif type(result) == "table" and result.json_patch then
		return nil, result.json_patch
	end
	error(result, 0)
end

return json_patch
