-- conditions: k8s.conditions: the list at status.conditions of an object, as Kubernetes keeps it: one for each type.

local k8s, core = ...

local date = os.date
local floor = math.floor
local next, pairs, tostring, type = next, pairs, tostring, type
local misuse, null = core.misuse, k8s.null

local STATUSES = { True = true, False = true, Unknown = true }

local function check_object(object, what)
	if type(object) ~= "table" then
		misuse(("%s takes an object, not a %s"):format(what, type(object)))
	end
end

local function check_type(kind, what)
	if type(kind) ~= "string" or kind == "" then
		misuse(("%s: the type of a condition is a text, not %s"):format(what, tostring(kind)))
	end
end

-- The condition's place in the list, or nil.
local function find(list, kind)
	for i = 1, #list do
		if type(list[i]) == "table" and list[i].type == kind then
			return i
		end
	end
end

-- Made where there is none.
local function list_of(object)
	if type(object.status) ~= "table" then
		object.status = {}
	end
	if type(object.status.conditions) ~= "table" then
		object.status.conditions = k8s.array {}
	end
	return object.status.conditions
end

local function present(value)
	return value ~= null and value or nil
end

-- What the condition is to be, given what it was.
local function updated(object, condition, before)
	local after = {}
	for name, value in next, condition do
		after[name] = value
	end
	after.message = after.message or ""
	after.reason = after.reason or present(before.reason) and "" or nil
	if after.observedGeneration == nil then
		after.observedGeneration = present(k8s.path(object, "metadata.generation"))
	end
	if after.lastTransitionTime == nil then
		local kept = before.status == after.status and present(before.lastTransitionTime)
		after.lastTransitionTime = kept or date("!%Y-%m-%dT%H:%M:%SZ", floor(k8s.now()))
	end
	return after
end

-- Servers leave out empty texts, and for kinds whose conditions have no such field the generation.
local function is_same(before, after, condition)
	for name, value in pairs(after) do
		local left_out = value == "" or (name == "observedGeneration" and condition[name] == nil)
		if not k8s.equal(before[name], value) and not (left_out and present(before[name]) == nil) then
			return false
		end
	end
	return true
end

local conditions = {}
k8s.conditions = conditions

function conditions.set(object, condition)
	check_object(object, "k8s.conditions.set")
	if type(condition) ~= "table" then
		misuse("k8s.conditions.set takes a condition as a table, not a " .. type(condition))
	end
	check_type(condition.type, "k8s.conditions.set")
	if not STATUSES[condition.status] then
		misuse("k8s.conditions.set: status must be \"True\", \"False\" or \"Unknown\", not " .. tostring(condition.status))
	end
	local list = list_of(object)
	local place = find(list, condition.type)
	local before = place and list[place] or {}
	local after = updated(object, condition, before)
	if place and is_same(before, after, condition) then
		return false
	end
	for name, value in pairs(before) do
		after[name] = after[name] == nil and value or after[name]
	end
	list[place or #list + 1] = after
	return true
end

function conditions.get(object, kind)
	check_object(object, "k8s.conditions.get")
	check_type(kind, "k8s.conditions.get")
	local list = k8s.path(object, "status.conditions", {})
	local place = find(list, kind)
	return place and list[place]
end

function conditions.is_true(object, kind)
	check_object(object, "k8s.conditions.is_true")
	check_type(kind, "k8s.conditions.is_true")
	local condition = conditions.get(object, kind)
	return condition ~= nil and condition.status == "True"
end
