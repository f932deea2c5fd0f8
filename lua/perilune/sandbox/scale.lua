--- The scale subresource: an object's replicas as an autoscaling/v1 Scale.
local k8s = require "perilune"
local body = require "perilune.sandbox.body"
local fail = require "perilune.sandbox.fail"
local merge = require "perilune.sandbox.merge"
local tree = require "perilune.sandbox.tree"
local write = require "perilune.sandbox.write"

local scale = {}

-- Where the numbers are. A definition of custom resources names its own places.
local BUILT_IN = { specReplicasPath = ".spec.replicas", statusReplicasPath = ".status.replicas" }

local function paths(resource)
	return type(resource.scale) == "table" and resource.scale or BUILT_IN
end

local function parts(text)
	local found = {}
	for part in text:gmatch "[^.]+" do
		found[#found + 1] = part
	end
	return found
end

local function read(object, text)
	return text and tree.at(object, unpack(parts(text)))
end

local function set(object, text, value)
	local names = parts(text)
	for i = 1, #names - 1 do
		object[names[i]] = object[names[i]] or {}
		object = object[names[i]]
	end
	object[names[#names]] = value
end

local function selector_text(object, resource)
	local path = paths(resource).labelSelectorPath
	if path then
		return read(object, path)
	end
	local labels = tree.at(object, "spec", "selector", "matchLabels") or (not resource.custom and tree.at(object, "spec", "selector"))
	local found = {}
	for _, key in ipairs(type(labels) == "table" and tree.keys(labels) or {}) do
		if type(labels[key]) == "string" then
			found[#found + 1] = key .. "=" .. labels[key]
		end
	end
	return #found > 0 and table.concat(found, ",") or nil
end

local function of(object, resource)
	local metadata = object.metadata
	local replicas = read(object, paths(resource).specReplicasPath)
	if replicas == nil and resource.custom then
		local text = ("the spec replicas field %q does not exist"):format(paths(resource).specReplicasPath)
		fail.raise({
			kind = "Status", apiVersion = "v1", metadata = {}, status = "Failure", message = "Internal error occurred: " .. text,
			reason = "InternalError", details = { causes = k8s.array { { message = text } } }, code = 500,
		})
	end
	return {
		kind = "Scale", apiVersion = "autoscaling/v1",
		metadata = {
			name = metadata.name, namespace = metadata.namespace, uid = metadata.uid, resourceVersion = metadata.resourceVersion,
			creationTimestamp = metadata.creationTimestamp,
		},
		spec = replicas and replicas ~= 0 and { replicas = replicas } or k8s.object {},
		status = { replicas = read(object, paths(resource).statusReplicasPath) or 0, selector = selector_text(object, resource) },
	}
end

local function wanted(request, object)
	if request.verb == "update" then
		return body.json(request.body, "the object provided is unrecognized (must be of type Scale)")
	end
	local whole = tree.copy(object)
	if read(whole, paths(request.resource).specReplicasPath) == nil then
		set(whole, paths(request.resource).specReplicasPath, 0)
	end
	return merge.plain(of(whole, request.resource), body.json(request.body, "error decoding patch"))
end

function scale.handle(server, request)
	local old = write.current(server, request)
	if request.verb == "get" then
		return { status = 200, body = k8s.json.encode(of(old, request.resource)) }
	end
	local asked = wanted(request, old)
	local version = tree.at(asked, "metadata", "resourceVersion")
	if version and version ~= "" and version ~= old.metadata.resourceVersion then
		fail.conflict(request.resource, request.name)
	end
	local object = tree.copy(old)
	set(object, paths(request.resource).specReplicasPath, tree.at(asked, "spec", "replicas") or 0)
	request.unmanaged = request.resource.custom ~= nil -- the API server notes no owner there
	object = write.commit(server, request, object, old)
	return { status = 200, body = k8s.json.encode(of(object, request.resource)) }
end

return scale
