--- What every object must be: its names, labels and finalizers, in the API server's words.
local fail = require "perilune.sandbox.fail"
local tree = require "perilune.sandbox.tree"

local validate = {}

local SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
	.. "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
	.. "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
local LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
	.. "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
local LABEL_VALUE = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
	.. "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
	.. "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
local QUALIFIED_NAME = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
	.. "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
	.. "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"

local function is_label(text)
	return text:find "^[a-z0-9][-a-z0-9]*$" ~= nil and text:sub(-1) ~= "-"
end

local function is_subdomain(text)
	for part in (text .. "."):gmatch "(.-)%." do
		if not is_label(part) then
			return false
		end
	end
	return true
end

local function subdomain_problem(name)
	if #name > 253 then
		return "must be no more than 253 bytes"
	end
	return not is_subdomain(name) and SUBDOMAIN or nil
end

local function label_problem(name)
	if #name > 63 then
		return "must be no more than 63 bytes"
	end
	return not is_label(name) and LABEL or nil
end

-- Names of roles and the like are parts of a path, and little else.
local function segment_problem(name)
	if name == "." or name == ".." then
		return ("may not be '%s'"):format(name)
	end
	local bad = name:match "[/%%]"
	return bad and ("may not contain '%s'"):format(bad) or nil
end

local NAMES = {
	["/namespaces"] = label_problem, ["/services"] = label_problem,
	["rbac.authorization.k8s.io/roles"] = segment_problem, ["rbac.authorization.k8s.io/rolebindings"] = segment_problem,
	["rbac.authorization.k8s.io/clusterroles"] = segment_problem,
	["rbac.authorization.k8s.io/clusterrolebindings"] = segment_problem,
}
validate.label_problem = label_problem

local function check_name(resource, object, causes)
	local name, base = object.metadata.name, object.metadata.generateName
	local find_problem = NAMES[resource.storage] or subdomain_problem
	local problem = base and base ~= "" and find_problem((base:gsub("[-.]$", "a")))
	if problem then
		causes[#causes + 1] = fail.cause("metadata.generateName", "FieldValueInvalid", base, problem)
	end
	problem = find_problem(name)
	if problem then
		causes[#causes + 1] = fail.cause("metadata.name", "FieldValueInvalid", name, problem)
	end
end

local function is_qualified(text)
	local prefix, name = text:match "^(.-)/(.*)$"
	if prefix and not is_subdomain(prefix) then
		return false
	end
	name = name or text
	return #name <= 63 and name:find "^[%w][-%w_.]*$" ~= nil and name:find "%w$" ~= nil
end

local function check_labels(object, causes)
	local labels = tree.at(object, "metadata", "labels") or {}
	for _, key in ipairs(tree.keys(labels)) do
		local value = labels[key]
		if not is_qualified(key) then
			causes[#causes + 1] = fail.cause("metadata.labels", "FieldValueInvalid", key, QUALIFIED_NAME)
		end
		if type(value) == "string" and value ~= "" and not (#value <= 63 and value:find "^%w[-%w_.]*$" and value:find "%w$") then
			causes[#causes + 1] = fail.cause("metadata.labels", "FieldValueInvalid", value,
				#value > 63 and "must be no more than 63 bytes" or LABEL_VALUE)
		end
	end
end

local function check_strings(object, field)
	local map = tree.at(object, "metadata", field) or {}
	for _, key in ipairs(tree.keys(map)) do
		if type(map[key]) ~= "string" then
			fail.bad_request(("json: cannot unmarshal %s into Go struct field ObjectMeta.metadata.%s of type string"):format(
				type(map[key]) == "boolean" and "bool" or type(map[key]), field))
		end
	end
end

--- Raises a 400 or 422 where the metadata is wrong. more: further causes.
function validate.object(resource, object, more)
	local causes = more or {}
	check_strings(object, "labels")
	check_strings(object, "annotations")
	check_name(resource, object, causes)
	check_labels(object, causes)
	if #causes > 0 then
		fail.invalid(resource, object.metadata.name, causes)
	end
end

local function has(list, name)
	for _, one in ipairs(list or {}) do
		if one == name then
			return true
		end
	end
	return false
end

--- An object that is being deleted gets no new finalizer.
function validate.finalizers(object, old)
	if not old.metadata.deletionTimestamp then
		return {}
	end
	local added = {}
	for _, name in ipairs(object.metadata.finalizers or {}) do
		if not has(old.metadata.finalizers, name) then
			added[#added + 1] = ("%q"):format(name)
		end
	end
	if #added == 0 then
		return {}
	end
	return { fail.cause("metadata.finalizers", "FieldValueForbidden", nil,
		"no new finalizers can be added if the object is being deleted, found new finalizers []string{"
		.. table.concat(added, ", ") .. "}") }
end

return validate
