--- Namespaces: those that are there at the start, and what the deletion of one takes along.
local delete = require "perilune.sandbox.delete"
local tree = require "perilune.sandbox.tree"

local namespaces = {}

local AT_START = { "default", "kube-node-lease", "kube-public", "kube-system" }

--- Makes the namespaces that every cluster has.
function namespaces.start(server)
	for _, name in ipairs(AT_START) do
		server:call("POST", "/api/v1/namespaces", { metadata = { name = name } })
	end
end

local function delete_content(server, name)
	local left = false
	for storage, resource in pairs(server.registry:storages()) do
		if resource.namespaced then
			for _, one in ipairs(server.store:list(storage)) do
				local object = one.entry.object
				if object.metadata.namespace == name and delete.one(server, resource, object, "Background") then
					left = true
				end
			end
		end
	end
	return left
end

local function finish(server, name)
	local namespace = server.store:get("/namespaces", nil, name)
	if not namespace or not namespace.metadata.deletionTimestamp or delete_content(server, name) then
		return
	end
	if #(namespace.metadata.finalizers or {}) == 0 then
		server.store:remove("/namespaces", nil, name)
	else -- its own finalizers are the last to hold it
		local copy = tree.copy(namespace)
		if copy.spec and copy.spec.finalizers then
			copy.spec.finalizers = nil
			server.store:put("/namespaces", copy)
		end
	end
end

--- A namespace that is being deleted goes when its content has gone.
function namespaces.on_event(server, event)
	local metadata = event.entry.object.metadata
	if event.storage == "/namespaces" and event.type == "MODIFIED" and metadata.deletionTimestamp then
		server:soon(function()
			finish(server, metadata.name)
		end)
	elseif event.type == "DELETED" and metadata.namespace then
		local namespace = server.store:get("/namespaces", nil, metadata.namespace)
		if namespace and namespace.metadata.deletionTimestamp then
			server:soon(function()
				finish(server, metadata.namespace)
			end)
		end
	end
end

return namespaces
