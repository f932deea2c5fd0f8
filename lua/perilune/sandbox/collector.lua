--- What follows the end of an owner: dependents go too, or lose their owner, as the propagation policy says. The API server
-- leaves this to the garbage collector of kube-controller-manager.
local k8s = require "perilune"
local delete = require "perilune.sandbox.delete"
local tree = require "perilune.sandbox.tree"

local collector = {}

-- --- who owns whom ---

local function each_owner(entry, fn)
	for _, reference in ipairs(entry and tree.at(entry.object, "metadata", "ownerReferences") or {}) do
		if reference.uid then
			fn(reference.uid)
		end
	end
end

local function note_owners(server, event)
	local id = event.storage .. "\n" .. event.key
	each_owner(event.old, function(uid)
		if server.owned[uid] then
			server.owned[uid][id] = nil
		end
	end)
	each_owner(event.type ~= "DELETED" and event.entry or nil, function(uid)
		server.owned[uid] = server.owned[uid] or {}
		server.owned[uid][id] = true
	end)
end

-- The objects that name this owner: { resource =, object = }.
local function dependents(server, uid)
	local found, resources = {}, server.registry:storages()
	for id in pairs(server.owned[uid] or {}) do
		local storage, key = id:match "^(.-)\n(.*)$"
		local entry = server.store:bucket(storage).entries[key]
		if entry and resources[storage] then
			found[#found + 1] = { resource = resources[storage], object = entry.object }
		end
	end
	table.sort(found, function(a, b)
		return tonumber(a.object.metadata.resourceVersion) < tonumber(b.object.metadata.resourceVersion)
	end)
	return found
end

local function without_owner(object, uid)
	local copy, kept = tree.copy(object), k8s.array {}
	for _, reference in ipairs(copy.metadata.ownerReferences) do
		if reference.uid ~= uid then
			kept[#kept + 1] = reference
		end
	end
	copy.metadata.ownerReferences = #kept > 0 and kept or nil
	return copy
end

-- --- the policies ---

local function release(server, uid)
	for _, one in ipairs(dependents(server, uid)) do
		server.store:put(one.resource.storage, without_owner(one.object, uid))
	end
end

local function collect(server, uid, policy)
	for _, one in ipairs(dependents(server, uid)) do
		if #one.object.metadata.ownerReferences > 1 then
			server.store:put(one.resource.storage, without_owner(one.object, uid))
		elseif not one.object.metadata.deletionTimestamp then
			delete.one(server, one.resource, one.object, policy)
		end
	end
end

local function has_finalizer(object, name)
	for _, one in ipairs(object.metadata.finalizers or {}) do
		if one == name then
			return true
		end
	end
	return false
end

local function drop_finalizer(server, storage, object, name)
	local copy, kept = tree.copy(object), k8s.array {}
	for _, one in ipairs(copy.metadata.finalizers) do
		if one ~= name then
			kept[#kept + 1] = one
		end
	end
	copy.metadata.finalizers = #kept > 0 and kept or nil
	if #kept == 0 then
		server.store:remove(storage, copy.metadata.namespace, copy.metadata.name)
	else
		server.store:put(storage, copy)
	end
end

local function carry_on(server, event)
	local object = server.store:bucket(event.storage).entries[event.key]
	object = object and object.object
	if not object or not object.metadata.deletionTimestamp then
		return
	elseif has_finalizer(object, "orphan") then
		release(server, object.metadata.uid)
		drop_finalizer(server, event.storage, object, "orphan")
	elseif has_finalizer(object, "foregroundDeletion") then
		collect(server, object.metadata.uid, "Foreground")
		if #dependents(server, object.metadata.uid) == 0 then
			drop_finalizer(server, event.storage, object, "foregroundDeletion")
		end
	end
end

-- The events of owners that wait for their dependents' end; a list of its own, since more may come to wait meanwhile.
local function waiting_owners(server, event)
	local found = {}
	each_owner(event.old, function(uid)
		for _, entry in pairs(server.waiting) do
			if entry.uid == uid then
				found[#found + 1] = entry.event
			end
		end
	end)
	return found
end

function collector.start(server)
	server.owned, server.waiting = {}, {}
end

--- Soon after the event, and not inside the write that made it.
function collector.on_event(server, event)
	note_owners(server, event)
	local uid = event.entry.object.metadata.uid
	if event.type == "DELETED" then
		server.waiting[event.storage .. "\n" .. event.key] = nil
		server:soon(function()
			if server.owned[uid] then
				collect(server, uid, "Background")
			end
			for _, owner in ipairs(waiting_owners(server, event)) do
				carry_on(server, owner)
			end
		end)
	elseif event.entry.object.metadata.deletionTimestamp then
		local object = event.entry.object
		if has_finalizer(object, "orphan") or has_finalizer(object, "foregroundDeletion") then
			server.waiting[event.storage .. "\n" .. event.key] = { uid = uid, event = event }
			server:soon(function()
				carry_on(server, event)
			end)
		end
	end
end

return collector
