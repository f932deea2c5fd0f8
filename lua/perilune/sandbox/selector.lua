--- Label and field selectors: text in, a function of an object out.
local fail = require "perilune.sandbox.fail"
local tree = require "perilune.sandbox.tree"

local selector = {}

-- --- label selectors ---

local function tokens(text)
	local found, at = {}, 1
	while true do
		at = text:find("%S", at)
		if not at then
			return found
		end
		local token = text:match("^[!=]?=", at) or text:match("^[!(),<>=]", at) or text:match("^[^%s!(),<>=]+", at)
		found[#found + 1] = token
		at = at + #token
	end
end

local function expected(found, what)
	fail.bad_request(("unable to parse requirement: found '%s', expected: %s"):format(found or "", what))
end

local Parser = {}
Parser.__index = Parser

function Parser:peek()
	return self.tokens[self.at]
end

function Parser:take()
	self.at = self.at + 1
	return self.tokens[self.at - 1]
end

local function is_word(token)
	return token and token:find "^[^!(),<>=]" ~= nil
end

function Parser:word(what)
	if not is_word(self:peek()) then
		expected(self:peek(), what)
	end
	return self:take()
end

function Parser:values()
	local values = {}
	if self:take() ~= "(" then
		expected(self.tokens[self.at - 1], "'('")
	end
	repeat
		values[is_word(self:peek()) and self:take() or ""] = true
		local token = self:take()
	until token ~= ","
	if self.tokens[self.at - 1] ~= ")" then
		expected(self.tokens[self.at - 1], "',', or ')'")
	end
	return values
end

-- An empty value is allowed: "a=".
function Parser:value()
	local found = self:peek()
	if found and found ~= "," and not is_word(found) then
		expected(found, "identifier")
	end
	return is_word(self:peek()) and self:take() or ""
end

local function compare(key, larger, value)
	local limit = tonumber(value)
	if not limit then
		fail.bad_request("values[0][" .. key .. "]: Invalid value: \"" .. value .. "\": for 'Gt', 'Lt' operators, the value must be an integer")
	end
	return function(labels)
		local number = tonumber(labels[key])
		return number ~= nil and (larger and number > limit or not larger and number < limit)
	end
end

local OPERATORS = {}

local function equals(key, parser)
	local value = parser:value()
	return function(labels)
		return labels[key] == value
	end
end
OPERATORS["="], OPERATORS["=="] = equals, equals

OPERATORS["!="] = function(key, parser)
	local value = parser:value()
	return function(labels)
		return labels[key] ~= value
	end
end

OPERATORS["in"] = function(key, parser)
	local values = parser:values()
	return function(labels)
		return labels[key] ~= nil and values[labels[key]] == true
	end
end

OPERATORS["notin"] = function(key, parser)
	local values = parser:values()
	return function(labels)
		return labels[key] == nil or not values[labels[key]]
	end
end

OPERATORS[">"] = function(key, parser)
	return compare(key, true, parser:value())
end

OPERATORS["<"] = function(key, parser)
	return compare(key, false, parser:value())
end

function Parser:requirement()
	if self:peek() == "!" then
		self:take()
		local key = self:word "identifier"
		return function(labels)
			return labels[key] == nil
		end
	end
	local key = self:word "identifier"
	local operator = self:peek()
	if operator == nil or operator == "," then
		return function(labels)
			return labels[key] ~= nil
		end
	end
	if not OPERATORS[operator] then
		expected(operator, "in, notin, =, ==, !=, gt, lt")
	end
	self:take()
	return OPERATORS[operator](key, self)
end

function Parser:all()
	local requirements = {}
	while self:peek() do
		requirements[#requirements + 1] = self:requirement()
		if self:peek() and self:take() ~= "," then
			expected(self.tokens[self.at - 1], "',' or 'end of string'")
		end
	end
	return requirements
end

local function label_tests(text)
	return setmetatable({ tokens = tokens(text), at = 1 }, Parser):all()
end

-- --- field selectors ---

-- What can be selected beside metadata.name and metadata.namespace, by kind.
local FIELDS = {
	["/pods"] = {
		"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
		"status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
	},
	["/events"] = {
		"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
		"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
		"reportingComponent", "source", "type",
	},
	["events.k8s.io/events"] = { "reason", "reportingController", "regarding.kind", "regarding.name", "regarding.namespace",
		"regarding.uid", "type" },
	["/namespaces"] = { "status.phase" },
	["/nodes"] = { "spec.unschedulable" },
	["/secrets"] = { "type" },
	["/services"] = { "spec.clusterIP", "spec.type" },
	["/replicationcontrollers"] = { "status.replicas" },
	["apps/replicasets"] = { "status.replicas" },
	["batch/jobs"] = { "status.successful" },
}

-- metadata.namespace comes last and only where there is one.
local function known_fields(resource)
	local names = { "metadata.name" }
	if resource.namespaced or not resource.custom then
		names[#names + 1] = "metadata.namespace"
	end
	for _, name in ipairs(FIELDS[resource.storage] or resource.selectable or {}) do
		names[#names + 1] = name
	end
	return names
end

local function check_field(resource, name)
	local known = known_fields(resource)
	for _, one in ipairs(known) do
		if one == name then
			return
		end
	end
	if FIELDS[resource.storage] or resource.custom then
		fail.bad_request("field label not supported: " .. name)
	end
	local quoted = {}
	for i, one in ipairs(known) do
		quoted[i] = ("%q"):format(one)
	end
	fail.bad_request(("%q is not a known field selector: only %s"):format(name, table.concat(quoted, ", ")))
end

local DEFAULTS = { ["spec.unschedulable"] = "false", ["spec.hostNetwork"] = "false" }

local function field_value(object, name)
	local value = object
	for part in name:gmatch "[^.]+" do
		value = tree.at(value, part)
	end
	return value == nil and (DEFAULTS[name] or "") or tostring(value)
end

local function unescape(text)
	return (text:gsub("\\(.)", "%1"))
end

local function field_test(resource, term)
	local name, operator, value = term:match "^([^=!]+)(!?==?)(.*)$"
	if not name then
		fail.bad_request(("invalid selector: '%s'; can't understand '%s'"):format(term, term))
	end
	check_field(resource, name)
	value = unescape(value)
	return function(object)
		return (field_value(object, name) == value) == (operator ~= "!=")
	end
end

local function field_tests(resource, text)
	local found = {}
	for term in text:gmatch "[^,]+" do
		found[#found + 1] = field_test(resource, term)
	end
	return found
end

--- A function that says whether an object matches both selectors, or nil where there is none. Raises a 400.
function selector.of(resource, labels_text, fields_text)
	local labels_wanted = label_tests(labels_text or "")
	local fields_wanted = field_tests(resource, fields_text or "")
	if #labels_wanted == 0 and #fields_wanted == 0 then
		return nil
	end
	return function(object)
		local labels = tree.at(object, "metadata", "labels") or {}
		for _, test in ipairs(labels_wanted) do
			if not test(labels) then
				return false
			end
		end
		for _, test in ipairs(fields_wanted) do
			if not test(object) then
				return false
			end
		end
		return true
	end
end

return selector
