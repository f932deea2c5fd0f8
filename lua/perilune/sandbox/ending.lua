--- What the deletion of a definition takes along: its objects first, each held by its own finalizers, and then itself.
local definitions = require "perilune.sandbox.definitions"
local delete = require "perilune.sandbox.delete"

local ending = {}

local function delete_objects(server, resource)
	local left = false
	for _, one in ipairs(server.store:list(resource.storage)) do
		left = delete.one(server, resource, one.entry.object, "Background") ~= nil or left
	end
	return left
end

local function continue(server, resource)
	local object = definitions.ending(server, resource)
	if not object then
		return
	elseif delete_objects(server, resource) then
		definitions.note_rest(server, object)
	else
		definitions.release(server, object)
	end
end

local function resource_of(server, event)
	local object, storages = event.entry.object, server.registry:storages()
	if event.storage == "apiextensions.k8s.io/customresourcedefinitions" then
		return storages[object.spec.group .. "/" .. object.spec.names.plural]
	end
	return storages[event.storage]
end

--- It goes on with each write of the definition, and with each of its objects that has gone.
function ending.on_event(server, event)
	if event.type == "ADDED" or not event.storage:find(".", 1, true) then
		return
	end
	local resource = resource_of(server, event)
	if resource and definitions.ending(server, resource) then
		server:soon(function()
			continue(server, resource)
		end)
	end
end

return ending
