--- Custom resources against their schema: defaults are filled in, unknown members dropped, types and limits checked.
local fail = require "perilune.sandbox.fail"
local k8s = require "perilune"
local members = require "perilune.sandbox.members"
local tree = require "perilune.sandbox.tree"

local schema = {}

local function keeps_unknown(one)
	return one["x-kubernetes-preserve-unknown-fields"] == true
end

-- --- defaults ---

local function fill(value, one)
	if type(value) ~= "table" or type(one) ~= "table" then
		return
	elseif tree.is_array(value) then
		for _, item in ipairs(value) do
			fill(item, one.items)
		end
		return
	end
	for name, property in pairs(one.properties or {}) do
		if value[name] == nil and property.default ~= nil then
			value[name] = tree.copy(property.default)
		end
		fill(value[name], property)
	end
	for name, member in pairs(value) do
		if not (one.properties or {})[name] then
			fill(member, one.additionalProperties)
		end
	end
end

-- --- unknown members ---

local OF_EVERY_OBJECT = { apiVersion = true, kind = true, metadata = true }

local function member_schema(one, name)
	local property = (one.properties or {})[name]
	if property then
		return property
	end
	local others = one.additionalProperties
	if others == true then
		return { ["x-kubernetes-preserve-unknown-fields"] = true }
	end
	return others or nil
end

local prune

local function prune_member(value, name, one, place, unknown)
	local inner = member_schema(one, name)
	if inner then
		prune(value[name], inner, place .. name, unknown)
	elseif not keeps_unknown(one) then
		value[name] = nil
		unknown[#unknown + 1] = place .. name
	end
end

prune = function(value, one, place, unknown)
	if type(value) ~= "table" then
		return
	elseif tree.is_array(value) then
		for i, item in ipairs(value) do
			prune(item, one.items or {}, ("%s[%d]"):format(place, i - 1), unknown)
		end
		return
	end
	local embedded = place == "" or one["x-kubernetes-embedded-resource"]
	for _, name in ipairs(tree.keys(value)) do
		if not (embedded and OF_EVERY_OBJECT[name]) then
			prune_member(value, name, one, place == "" and "" or place .. ".", unknown)
		end
	end
end

-- --- types and limits ---

local function json_type(value)
	if value == k8s.null then
		return "null"
	elseif type(value) == "table" then
		return tree.is_array(value) and "array" or "object"
	elseif type(value) == "number" then
		return value % 1 == 0 and "integer" or "number"
	elseif type(value) == "cdata" then
		return "integer"
	end
	return type(value)
end

local function type_fits(value, one)
	local found = json_type(value)
	if one["x-kubernetes-int-or-string"] then
		return found == "integer" or found == "string"
	elseif not one.type or (found == "null" and one.nullable) then
		return true
	end
	return found == one.type or (found == "integer" and one.type == "number")
		or (found == "object" and one.type == "array" and next(value) == nil)
end

local function place_of(place)
	return place == "" and "<nil>" or place
end

local function add(causes, place, reason, value, detail)
	causes[#causes + 1] = fail.cause(place_of(place), reason, value, detail)
end

local function check_enum(value, one, place, causes)
	if type(one.enum) ~= "table" then
		return
	end
	local texts = {}
	for i, allowed in ipairs(one.enum) do
		if tree.equal(allowed, value) then
			return
		end
		texts[i] = k8s.json.encode(allowed)
	end
	add(causes, place, "FieldValueNotSupported", value, "supported values: " .. table.concat(texts, ", "))
end

local function check_number(value, one, place, causes)
	if one.minimum and value < one.minimum then
		add(causes, place, "FieldValueInvalid", value, ("%s in body should be greater than or equal to %g"):format(place, one.minimum))
	elseif one.maximum and value > one.maximum then
		add(causes, place, "FieldValueInvalid", value, ("%s in body should be less than or equal to %g"):format(place, one.maximum))
	end
end

local function check_text(value, one, place, causes)
	if one.minLength and #value < one.minLength then
		add(causes, place, "FieldValueInvalid", value, ("%s in body should be at least %d chars long"):format(place, one.minLength))
	elseif one.maxLength and #value > one.maxLength then
		causes[#causes + 1] = { reason = "FieldValueTooLong", field = place,
			message = ("Too long: may not be more than %d bytes"):format(one.maxLength) }
	end
end

local check

local function check_object(value, one, place, causes)
	local prefix = place == "" and "" or place .. "."
	for _, name in ipairs(one.required or {}) do
		if value[name] == nil then
			add(causes, prefix .. name, "FieldValueRequired")
		end
	end
	for _, name in ipairs(tree.keys(value)) do
		local inner = member_schema(one, name)
		if inner and not (place == "" and OF_EVERY_OBJECT[name]) then
			check(value[name], inner, prefix .. name, causes)
		end
	end
end

check = function(value, one, place, causes)
	if not type_fits(value, one) then
		causes[#causes + 1] = { reason = "FieldValueTypeInvalid", field = place_of(place),
			message = ("Invalid value: %s: %s in body must be of type %s: %s"):format(("%q"):format(json_type(value)), place,
				one.type or "integer", ("%q"):format(json_type(value))) }
		return
	end
	check_enum(value, one, place, causes)
	local kind = json_type(value)
	if kind == "object" then
		check_object(value, one, place, causes)
	elseif kind == "array" then
		for i, item in ipairs(value) do
			check(item, one.items or {}, ("%s[%d]"):format(place, i - 1), causes)
		end
	elseif kind == "string" then
		check_text(value, one, place, causes)
	elseif kind == "integer" or kind == "number" then
		check_number(value, one, place, causes)
	end
end

local function raise_unknown(resource, unknown)
	local texts = {}
	for i, place in ipairs(unknown) do
		texts[i] = ("unknown field %q"):format(place)
	end
	fail.bad_request(("%s in version %q cannot be handled as a %s: strict decoding error: %s"):format(resource.kind,
		resource.version, resource.kind, table.concat(texts, ", ")))
end

local MOST_WARNINGS = 50

-- As fieldValidation says: an error, a warning each, or nothing.
local function tell_unknown(resource, unknown, request)
	local how = request.query.fieldValidation
	if #unknown > 0 and how == "Strict" then
		raise_unknown(resource, unknown)
	elseif how ~= "Ignore" then
		for i = 1, math.min(#unknown, MOST_WARNINGS) do
			local place = unknown[i]
			request.warnings = request.warnings or {}
			table.insert(request.warnings, ('299 - "unknown field \\"%s\\""'):format(place))
		end
	end
end

--- Drops what no object of the kind has; custom resources are also filled in and checked. Raises a 400 (strict field
-- validation) or a 422.
function schema.admit(resource, object, request)
	local one = resource.schema
	if not one then
		if not resource.custom then
			tell_unknown(resource, members.prune(resource, object), request)
		end
		return
	end
	local unknown = {}
	prune(object, one, "", unknown)
	tell_unknown(resource, unknown, request)
	fill(object, one)
	local causes = {}
	check(object, one, "", causes)
	if #causes > 0 then
		fail.invalid(resource, object.metadata.name, causes)
	end
end

return schema
