--- The answers that are no success, as Status objects in the words of the API server. Each function raises its Status; the
-- router answers with it.
local k8s = require "perilune"

local fail = {}

local Failure = {}
Failure.__index = Failure
Failure.__tostring = function(failure)
	return failure.plain or failure.status.message
end

--- The Status table for these fields.
function fail.status(code, reason, message, details, metadata)
	return {
		kind = "Status", apiVersion = "v1", metadata = metadata or {}, status = "Failure",
		message = message, reason = reason, details = details, code = code,
	}
end

--- Raises a Status; headers are sent along.
function fail.raise(status, headers)
	error(setmetatable({ status = status, headers = headers }, Failure), 0)
end

--- What was raised here: { status =, headers = } or { plain =, code = }; nil for another error.
function fail.of(problem)
	return getmetatable(problem) == Failure and problem or nil
end

local function details_of(resource, name, causes, kind)
	return {
		name = name ~= "" and name or nil,
		group = resource.group ~= "" and resource.group or nil,
		kind = kind or resource.plural,
		causes = causes,
	}
end
fail.details = details_of

function fail.not_found(resource, name)
	fail.raise(fail.status(404, "NotFound", ('%s "%s" not found'):format(resource.qualified, name), details_of(resource, name)))
end

function fail.no_such_path()
	fail.raise(fail.status(404, "NotFound", "the server could not find the requested resource", {}))
end

--- A path of no API at all: answered in plain text.
function fail.not_a_path()
	error(setmetatable({ plain = "404 page not found\n", code = 404 }, Failure), 0)
end

function fail.method_not_allowed()
	fail.raise(fail.status(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}))
end

function fail.already_exists(resource, name)
	fail.raise(fail.status(409, "AlreadyExists", ('%s "%s" already exists'):format(resource.qualified, name),
		details_of(resource, name)))
end

function fail.conflict(resource, name, why)
	why = why or "the object has been modified; please apply your changes to the latest version and try again"
	fail.raise(fail.status(409, "Conflict",
		('Operation cannot be fulfilled on %s "%s": %s'):format(resource.qualified, name, why), details_of(resource, name)))
end

function fail.bad_request(message)
	fail.raise(fail.status(400, "BadRequest", message))
end

function fail.forbidden(resource, name, why, causes)
	fail.raise(fail.status(403, "Forbidden", ('%s "%s" is forbidden: %s'):format(resource.qualified, name, why),
		details_of(resource, name, causes)))
end

local REASONS = {
	FieldValueInvalid = "Invalid value", FieldValueRequired = "Required value", FieldValueForbidden = "Forbidden",
	FieldValueDuplicate = "Duplicate value", FieldValueNotSupported = "Unsupported value", FieldValueTypeInvalid = "Invalid value",
}

--- One cause of `fail.invalid`. value: quoted when it is a text; nil where the reason has none.
function fail.cause(field, reason, value, detail)
	local text = REASONS[reason]
	if value ~= nil then
		text = ("%s: %s"):format(text, type(value) == "string" and ("%q"):format(value) or k8s.json.encode(value))
	end
	if detail and detail ~= "" then
		text = text .. ": " .. detail
	end
	return { reason = reason, message = text, field = field }
end

--- kind: "ConfigMap"; group: of the kind.
function fail.invalid(resource, name, causes)
	local texts = {}
	for i, cause in ipairs(causes) do
		texts[i] = cause.field .. ": " .. cause.message
	end
	local text = #texts > 1 and "[" .. table.concat(texts, ", ") .. "]" or texts[1]
	local kind = resource.group == "" and resource.kind or resource.kind .. "." .. resource.group
	fail.raise(fail.status(422, "Invalid", ('%s "%s" is invalid: %s'):format(kind, name, text),
		details_of(resource, name, k8s.array(causes), resource.kind)))
end

function fail.expired(message, metadata)
	fail.raise(fail.status(410, "Expired", message, nil, metadata))
end

function fail.gone(message)
	fail.raise(fail.status(410, "Gone", message))
end

function fail.unsupported_media_type(accepted)
	fail.raise(fail.status(415, "UnsupportedMediaType",
		"the body of the request was in an unknown format - accepted media types include: " .. table.concat(accepted, ", ")))
end

return fail
