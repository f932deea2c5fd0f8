--- DELETE of one object and of many: preconditions, finalizers, propagation.
local k8s = require "perilune"
local body = require "perilune.sandbox.body"
local definitions = require "perilune.sandbox.definitions"
local fail = require "perilune.sandbox.fail"
local list = require "perilune.sandbox.list"
local tree = require "perilune.sandbox.tree"
local view = require "perilune.sandbox.view"
local write = require "perilune.sandbox.write"

local delete = {}

-- The finalizer that each policy adds; the collector takes it away when the policy has been carried out.
local POLICIES = { Orphan = "orphan", Foreground = "foregroundDeletion", Background = false }

local function read_options(request)
	local options = body.options(request)
	if options.propagationPolicy == nil then
		options.propagationPolicy = request.query.propagationPolicy
	end
	if options.propagationPolicy and POLICIES[options.propagationPolicy] == nil then
		fail.invalid({ group = "meta.k8s.io", kind = "DeleteOptions", plural = "" }, "", {
			fail.cause("propagationPolicy", "FieldValueNotSupported", options.propagationPolicy,
				'supported values: "Foreground", "Background", "Orphan", "nil"') })
	end
	if type(options.dryRun) == "table" and options.dryRun[1] == "All" then
		request.dry_run = true
	end
	return options
end

-- Said of the kind, where other conflicts speak of the resource.
local function conflict(resource, name, why)
	local kind = resource.group == "" and resource.kind or resource.kind .. "." .. resource.group
	local details = fail.details(resource, name, nil, resource.kind)
	fail.raise(fail.status(409, "Conflict", ('Operation cannot be fulfilled on %s "%s": %s'):format(kind, name, why), details))
end

local function check_preconditions(resource, old, wanted)
	local metadata = old.metadata
	if type(wanted) ~= "table" then
		return
	elseif wanted.uid and wanted.uid ~= metadata.uid then
		conflict(resource, metadata.name, ("the UID in the precondition (%s) does not match the UID in record (%s). "
			.. "The object might have been deleted and then recreated"):format(wanted.uid, metadata.uid))
	elseif wanted.resourceVersion and wanted.resourceVersion ~= metadata.resourceVersion then
		conflict(resource, metadata.name, ("the ResourceVersion in the precondition (%s) does not match the ResourceVersion "
			.. "in record (%s). The object might have been modified"):format(wanted.resourceVersion, metadata.resourceVersion))
	end
end

local function finalizers_of(old, policy)
	local finalizers = k8s.array {}
	for _, name in ipairs(old.metadata.finalizers or {}) do
		if name ~= "orphan" and name ~= "foregroundDeletion" or not policy then
			finalizers[#finalizers + 1] = name
		end
	end
	if POLICIES[policy] then
		finalizers[#finalizers + 1] = POLICIES[policy]
	end
	return finalizers
end

-- Marks an object as being deleted; what finalizers wait for is theirs to do.
local function begin_deletion(server, old, finalizers)
	local object = tree.copy(old)
	local metadata = object.metadata
	metadata.finalizers = #finalizers > 0 and finalizers or nil
	if not metadata.deletionTimestamp then
		metadata.deletionTimestamp, metadata.deletionGracePeriodSeconds = server.clock:timestamp(), 0
		metadata.generation = metadata.generation and metadata.generation + 1
	end
	if object.kind == "Namespace" then
		metadata.deletionGracePeriodSeconds = nil
		object.status = { phase = "Terminating" }
	end
	return object
end

local function is_held(old, finalizers)
	return #finalizers > 0 or #(tree.at(old, "spec", "finalizers") or {}) > 0 and old.kind == "Namespace"
end

--- Deletes an object of a kind by the rules. Returns what is there afterwards (nil when it has gone), and its last state.
function delete.one(server, resource, old, policy, dry)
	local finalizers = finalizers_of(old, policy)
	if definitions.is_definition(resource) then
		finalizers = definitions.hold(old, finalizers)
	end
	if is_held(old, finalizers) then
		local object = begin_deletion(server, old, finalizers)
		if definitions.is_definition(resource) and not old.metadata.deletionTimestamp then
			definitions.begin_deletion(server, object, old)
		end
		if tree.equal(object, old) or dry then
			return object, object
		end
		server.store:put(resource.storage, object)
		return object, object
	elseif dry then
		return nil, old
	end
	local last = server.store:remove(resource.storage, old.metadata.namespace, old.metadata.name)
	return nil, resource.graceful and begin_deletion(server, last, finalizers) or last
end

local function success(resource, object)
	local details = fail.details(resource, object.metadata.name)
	details.uid = object.metadata.uid
	return { status = 200, body = k8s.json.encode {
		kind = "Status", apiVersion = "v1", metadata = {}, status = "Success", details = details } }
end

function delete.handle(server, request)
	local resource, options = request.resource, read_options(request)
	local old = write.current(server, request)
	check_preconditions(resource, old, options.preconditions)
	local left, last = delete.one(server, resource, old, options.propagationPolicy, write.is_dry(request))
	if left or resource.returns then
		return write.show(request, 200, last)
	end
	return success(resource, old)
end

function delete.collection(server, request)
	local options = read_options(request)
	local entries, metadata = list.entries(server, request)
	local dry = write.is_dry(request)
	for _, one in ipairs(entries) do
		local old = server.store:get(request.resource.storage, one.entry.object.metadata.namespace, one.entry.object.metadata.name)
		if old then
			delete.one(server, request.resource, old, options.propagationPolicy, dry)
		end
	end
	return { status = 200, body = view.of(request, true).list(request.resource, entries, metadata, request) }
end

return delete
