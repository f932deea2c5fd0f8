--- The body of a request to a table.
local k8s = require "perilune"
local fail = require "perilune.sandbox.fail"
local protobuf = require "perilune.sandbox.protobuf"

local body = {}

local ACCEPTED = { "application/json", "application/yaml", "application/vnd.kubernetes.protobuf" }

local function media_type(request)
	return (request.headers["content-type"] or "application/json"):match "^[^;%s]*"
end
body.media_type = media_type

--- JSON text to a value; raises a 400. what: for the message.
function body.json(text, what)
	local value, err = k8s.json.decode(text)
	if value == nil then -- Go's parser finds other words for most of what can be wrong
		if text == "" or tostring(err):find "expected the rest" then
			err = ("unexpected end of JSON input (%s)"):format(text)
		end
		fail.bad_request(("%s: %s"):format(what, err))
	end
	return value
end

local DECODERS = {
	["application/json"] = function(text, kind)
		return body.json(text, ("the object provided is unrecognized (must be of type %s): couldn't get version/kind; json parse error")
			:format(kind))
	end,
	["application/yaml"] = function(text)
		local value, err = k8s.yaml.decode(text)
		if value == nil then
			fail.bad_request("error converting YAML to JSON: " .. tostring(err))
		end
		return value
	end,
	["application/vnd.kubernetes.protobuf"] = function(text)
		return protobuf.decode(text) or fail.unsupported_media_type(ACCEPTED)
	end,
}

local function check_builtin(resource, object)
	local version, kind = object.apiVersion, object.kind
	if kind ~= resource.kind then
		fail.bad_request(("%s in version %q cannot be handled as a %s: converting (%s.%s) to (%s.%s): unknown conversion"):format(
			kind, version, resource.kind, version, kind, resource.group == "" and "core" or resource.group, resource.kind))
	elseif version ~= resource.api_version then
		fail.bad_request(("%s in version %q cannot be handled as a %s: no kind %q is registered for version %q in scheme "
			.. '"pkg/runtime/scheme.go:111"'):format(kind, version, resource.kind, kind, version))
	end
end

local function check_custom(resource, object)
	if object.apiVersion ~= resource.api_version then
		fail.bad_request(("the API version in the data (%s) does not match the expected API version (%s)"):format(
			object.apiVersion, resource.api_version))
	elseif object.kind ~= resource.kind then
		local as_said = { group = resource.group, kind = object.kind, plural = resource.plural }
		fail.invalid(as_said, object.metadata and object.metadata.name or "", {
			fail.cause("kind", "FieldValueInvalid", object.kind, "must be " .. resource.kind) })
	end
end

local SHOWN = 30 -- bytes of the body in a message

-- Custom resources must say what they are; others are taken for what the path says.
local function check_named(resource, object, text)
	local missing = not object.kind and "Kind" or not object.apiVersion and "apiVersion"
	if resource.custom and missing then
		local shown = #text > SHOWN and text:sub(1, SHOWN) .. " ..." or text
		fail.bad_request(("the object provided is unrecognized (must be of type %s): Object '%s' is missing in '%s' (%s)"):format(
			resource.kind, missing, text, shown))
	end
	object.apiVersion = object.apiVersion or resource.api_version
	object.kind = object.kind or resource.kind
end

local function check_type(resource, object, text)
	check_named(resource, object, text);
	(resource.custom and check_custom or check_builtin)(resource, object)
end
body.check_type = check_type

--- The object that a create or an update brings.
function body.object(request)
	local resource = request.resource
	local decode = DECODERS[media_type(request)]
	if not decode then
		fail.unsupported_media_type(ACCEPTED)
	end
	local object = decode(request.body, resource.kind)
	if type(object) ~= "table" then
		fail.bad_request(("couldn't get version/kind; json parse error: the body is no object"))
	end
	check_type(resource, object, request.body)
	if type(object.metadata) ~= "table" then
		object.metadata = {}
	end
	return object
end

--- The options that a delete may bring; an empty table where there is no body.
function body.options(request)
	if request.body == "" then
		return {}
	end
	local decode = DECODERS[media_type(request)]
	if not decode then
		fail.unsupported_media_type(ACCEPTED)
	end
	local options = decode(request.body, "DeleteOptions")
	return type(options) == "table" and options or {}
end

return body
