--- Manifests from files into a server: definitions first, then namespaces, then the rest, each in its order.
local k8s = require "perilune"

local manifests = {}

local RANK = { CustomResourceDefinition = 1, Namespace = 2 }
local LAST = 3

local function read(path)
	local file, err = io.open(path)
	if not file then
		error(err, 0)
	end
	local text = file:read "*a"
	file:close()
	return text
end

local function add_object(found, object, path)
	if type(object) ~= "table" or type(object.apiVersion) ~= "string" or type(object.kind) ~= "string" then
		error(path .. ": a document that is no object with apiVersion and kind", 0)
	elseif object.kind == "List" and object.apiVersion == "v1" then
		for _, item in ipairs(object.items or {}) do
			add_object(found, item, path)
		end
		return
	end
	found[#found + 1] = { object = object, path = path, place = #found, rank = RANK[object.kind] or LAST }
end

local function read_all(paths)
	local found = {}
	for _, path in ipairs(paths) do
		local documents, err = k8s.yaml.decode_all(read(path))
		if not documents then
			error(path .. ": " .. err, 0)
		end
		for _, object in ipairs(documents) do
			add_object(found, object, path)
		end
	end
	return found
end

local function unknown_kind(server, object, path)
	local nearest = server.io.nearest(object.kind, server.registry:kinds_of(object.apiVersion))
	error(("%s: the sandbox has no kind %s in %s%s"):format(path, object.kind, object.apiVersion,
		nearest and (", did you mean %s?"):format(nearest) or ""), 0)
end

local function url_of(server, object, path)
	local resource = server.registry:of_kind(object.apiVersion, object.kind) or unknown_kind(server, object, path)
	local prefix = resource.group == "" and "/api/" or "/apis/"
	local namespace = resource.namespaced and "/namespaces/" .. (object.metadata and object.metadata.namespace or "default") or ""
	return prefix .. resource.api_version .. namespace .. "/" .. resource.plural, resource
end

-- Made anew, or put over what is there, such as the namespace default.
local function put(server, one)
	local object = one.object
	local url, resource = url_of(server, object, one.path)
	local status, answer = server:call("POST", url, object)
	if status == 409 and answer.reason == "AlreadyExists" then
		status, answer = server:call("PATCH", url .. "/" .. object.metadata.name, object,
			{ ["content-type"] = "application/merge-patch+json" })
	end
	if status >= 300 then
		error(("%s: %s"):format(one.path, answer.message), 0)
	end
	if object.status and resource.status then
		server:call("PATCH", ("%s/%s/status"):format(url, answer.metadata.name), { status = object.status },
			{ ["content-type"] = "application/merge-patch+json" })
	end
end

--- Puts what stands in a file, or in the files of a folder, into the server. An error says which file and why.
function manifests.apply(server, path)
	local paths, err = server.io.files(path)
	if not paths then
		error(err, 0)
	end
	local found = read_all(paths)
	table.sort(found, function(a, b)
		return a.rank < b.rank or (a.rank == b.rank and a.place < b.place)
	end)
	for _, one in ipairs(found) do
		put(server, one)
	end
end

return manifests
