--- PATCH: the four kinds of patches, by the content type.
local apply = require "perilune.sandbox.apply"
local body = require "perilune.sandbox.body"
local fail = require "perilune.sandbox.fail"
local json_patch = require "perilune.sandbox.json_patch"
local merge = require "perilune.sandbox.merge"
local shape = require "perilune.sandbox.shape"
local tree = require "perilune.sandbox.tree"
local write = require "perilune.sandbox.write"

local patch = {}

local KINDS = {}

KINDS["application/merge-patch+json"] = function(old, change)
	return merge.plain(old, change)
end

KINDS["application/strategic-merge-patch+json"] = function(old, change, request)
	return merge.strategic(old, change, shape.of(request.resource))
end

KINDS["application/json-patch+json"] = function(old, change)
	if not tree.is_array(change) then
		fail.bad_request("error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp")
	end
	local result = json_patch.apply(old, change)
	if not result then
		-- The API server does not say what the problem is.
		fail.raise(fail.status(422, "Invalid", "the server rejected our request due to an error in our request", {}))
	end
	return result
end

-- By custom resources.
local ACCEPTED = {
	"application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml",
}

local function check_unchanged_name(object, old)
	if type(object.metadata) ~= "table" then
		fail.bad_request("the patched object has no metadata")
	elseif object.metadata.name ~= old.metadata.name then
		fail.bad_request(("the name of the object (%s) does not match the name on the URL (%s)"):format(
			tostring(object.metadata.name), old.metadata.name))
	end
end

function patch.handle(server, request)
	if not request.name then
		fail.method_not_allowed()
	end
	local kind = body.media_type(request)
	if kind == "application/apply-patch+yaml" then
		return apply.handle(server, request)
	end
	local change_object = KINDS[kind]
	if not change_object then
		fail.raise(fail.status(415, "UnsupportedMediaType", "415: Unsupported Media Type", {}))
	elseif request.resource.custom and kind:find "strategic" then
		fail.unsupported_media_type(ACCEPTED)
	end
	local change = body.json(request.body, "error decoding patch")
	local old = write.current(server, request)
	local object = tree.copy(change_object(old, change, request))
	check_unchanged_name(object, old)
	if object.metadata.resourceVersion ~= old.metadata.resourceVersion and not tree.is_null(object.metadata.resourceVersion) then
		fail.conflict(request.resource, request.name)
	end
	if object.metadata.uid ~= old.metadata.uid and not tree.is_null(object.metadata.uid) then
		write.uid_conflict(request, object.metadata.uid, old)
	end
	return write.show(request, 200, write.commit(server, request, object, old))
end

return patch
