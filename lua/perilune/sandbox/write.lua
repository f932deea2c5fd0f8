--- CREATE, UPDATE and what all writes share: metadata that only the server sets, conflicts, generation, managed fields.
local k8s = require "perilune"
local body = require "perilune.sandbox.body"
local defaults = require "perilune.sandbox.defaults"
local definitions = require "perilune.sandbox.definitions"
local fail = require "perilune.sandbox.fail"
local managed = require "perilune.sandbox.managed"
local names = require "perilune.sandbox.names"
local schema = require "perilune.sandbox.schema"
local tree = require "perilune.sandbox.tree"
local validate = require "perilune.sandbox.validate"
local view = require "perilune.sandbox.view"

local write = {}

function write.is_dry(request)
	return request.query.dryRun == "All" or request.dry_run or false
end

--- The object in the view that the request asks for.
function write.show(request, status, object)
	local shown = view.of(request, false)
	return { status = status, body = shown.json({ object = object }, request.resource, request) }
end

local function who(request)
	return { manager = managed.manager(request), apiVersion = request.resource.api_version, subresource = request.subresource }
end

-- --- checks ---

local function check_namespace(request, object)
	if not request.resource.namespaced then
		object.metadata.namespace = nil
		return
	end
	local said = object.metadata.namespace
	if said and said ~= "" and said ~= request.namespace then
		fail.bad_request("the namespace of the provided object does not match the namespace sent on the request")
	end
	object.metadata.namespace = request.namespace
end

local function check_living_namespace(server, request, name)
	local namespace = server.store:get("/namespaces", nil, request.namespace)
	if not namespace then
		fail.not_found(server.registry:find("", "v1", "namespaces"), request.namespace)
	elseif namespace.metadata.deletionTimestamp then
		local text = ("namespace %s is being terminated"):format(request.namespace)
		fail.forbidden(request.resource, name, "unable to create new content in namespace " .. request.namespace
			.. " because it is being terminated", k8s.array {
				{ reason = "NamespaceTerminating", message = text, field = "metadata.namespace" } })
	end
end

local function name_new(resource, object)
	local metadata = object.metadata
	if tree.is_null(metadata.name) or metadata.name == "" then
		if tree.is_null(metadata.generateName) or metadata.generateName == "" then
			fail.invalid(resource, "", { fail.cause("metadata.name", "FieldValueRequired", nil, "name or generateName is required") })
		end
		metadata.name = names.generate(metadata.generateName)
	end
end

--- Raises the conflict of an object that is another one of the same name.
function write.uid_conflict(request, said, old)
	local resource, metadata = request.resource, old.metadata
	fail.conflict(resource, metadata.name, ("StorageError: invalid object, Code: 4, Key: /registry/%s/%s, ResourceVersion: 0, "
		.. "AdditionalErrorMsg: Precondition failed: UID in precondition: %s, UID in object meta: %s"):format(
		resource.plural, metadata.namespace and metadata.namespace .. "/" .. metadata.name or metadata.name, said, metadata.uid))
end

-- --- create ---

local function start_metadata(server, resource, object)
	local metadata = object.metadata
	metadata.uid, metadata.creationTimestamp = names.uid(), server.clock:timestamp()
	metadata.deletionTimestamp, metadata.deletionGracePeriodSeconds, metadata.selfLink = nil, nil, nil
	metadata.resourceVersion, metadata.managedFields = nil, nil
	metadata.generation = (resource.generation or resource.custom) and 1 or nil
end

--- Makes an object ready to be stored as a new one. The object is changed.
function write.prepare_new(server, request, object)
	local resource = request.resource
	if (object.metadata.resourceVersion or "") ~= "" then
		fail.raise({ kind = "Status", apiVersion = "v1", metadata = {}, status = "Failure",
			message = "resourceVersion should not be set on objects to be created", code = 500 })
	end
	tree.normalise(object, not resource.custom)
	check_namespace(request, object)
	name_new(resource, object)
	if resource.namespaced then
		check_living_namespace(server, request, object.metadata.name)
	end
	if definitions.ending(server, resource) then
		fail.forbidden(resource, object.metadata.name, "create not allowed while custom resource definition is terminating")
	end
	start_metadata(server, resource, object)
	if resource.status then
		object.status = nil
	end
	schema.admit(resource, object, request)
	defaults.new(server, resource, object)
end

--- Stores a prepared object, with what the server itself says in it, which no manager owns; raises where its name is taken.
function write.store_new(server, request, object)
	local resource = request.resource
	defaults.own(server, resource, object)
	validate.object(resource, object, defaults.problems(server, resource, object))
	if server.store:get(resource.storage, object.metadata.namespace, object.metadata.name) then
		fail.already_exists(resource, object.metadata.name)
	end
	if not write.is_dry(request) then
		server.store:put(resource.storage, object)
	end
	return object
end

function write.create(server, request)
	if request.name then
		fail.method_not_allowed()
	end
	local resource = request.resource
	local object = body.object(request)
	if resource.create then
		return { status = 201, body = k8s.json.encode(defaults.review(resource, object)) }
	end
	write.prepare_new(server, request, object)
	managed.update(resource, nil, object, who(request), server.clock:timestamp())
	return write.show(request, 201, write.store_new(server, request, object))
end

-- --- update ---

local function check_version(request, object, old)
	local said = object.metadata.resourceVersion
	if tree.is_null(said) or said == "" then
		if request.resource.custom or request.resource.versioned then
			local resource = request.resource
			fail.invalid({ group = resource.group, kind = resource.plural, plural = resource.plural }, old.metadata.name, {
				fail.cause("metadata.resourceVersion", "FieldValueInvalid", 0, "must be specified for an update") })
		end
	elseif said ~= old.metadata.resourceVersion then
		fail.conflict(request.resource, old.metadata.name)
	end
end

local function check_uid(request, object, old)
	local said = object.metadata.uid
	if not tree.is_null(said) and said ~= "" and said ~= old.metadata.uid then
		write.uid_conflict(request, said, old)
	end
end

local FIXED = { "name", "uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink" }

local function keep_fixed(object, old)
	for _, name in ipairs(FIXED) do
		object.metadata[name] = old.metadata[name]
	end
	object.metadata.resourceVersion = old.metadata.resourceVersion
end

-- A write to the status takes nothing else along, and a write to the rest leaves the status.
local function split_status(request, object, old)
	if request.subresource == "status" then
		local whole = tree.copy(old)
		whole.status = object.status
		whole.metadata.managedFields = object.metadata.managedFields
		return whole
	elseif request.resource.status then
		object.status = tree.copy(old.status)
	end
	return object
end

local function is_content(name)
	return name ~= "metadata" and name ~= "status" and name ~= "apiVersion" and name ~= "kind"
end

local function content_changed(object, old)
	for name in pairs(object) do
		if is_content(name) and not tree.equal(object[name], old[name]) then
			return true
		end
	end
	for name in pairs(old) do
		if is_content(name) and object[name] == nil then
			return true
		end
	end
	return false
end

local function count_generation(object, old)
	if old.metadata.generation and content_changed(object, old) then
		object.metadata.generation = old.metadata.generation + 1
	end
end

-- Whether anything but who wrote it and when differs.
local function is_same(object, old)
	local a, b = tree.shallow(object), tree.shallow(old)
	a.metadata, b.metadata = tree.shallow(object.metadata), tree.shallow(old.metadata)
	a.metadata.managedFields, b.metadata.managedFields = nil, nil
	return tree.equal(a, b)
end

--- Makes an object ready to take the place of old. Returns it; the one given may be changed.
function write.prepare(server, request, object, old)
	local resource = request.resource
	tree.normalise(object, not resource.custom)
	check_namespace(request, object)
	keep_fixed(object, old)
	object = split_status(request, object, old)
	schema.admit(resource, object, request)
	defaults.changed(server, resource, object, old)
	local causes = validate.finalizers(object, old)
	for _, cause in ipairs(defaults.problems(server, resource, object, old)) do
		causes[#causes + 1] = cause
	end
	validate.object(resource, object, causes)
	count_generation(object, old)
	return object
end

local function is_finished(object)
	return object.metadata.deletionTimestamp and #(object.metadata.finalizers or {}) == 0
		and #(tree.at(object, "spec", "finalizers") or {}) == 0
end

--- Stores a prepared object in place of old; what is then stored. An object that only waited for its finalizers goes.
function write.replace(server, request, object, old, entries_changed)
	if is_same(object, old) and not entries_changed then
		return old
	elseif write.is_dry(request) then
		return object
	end
	local storage = request.resource.storage
	if is_finished(object) then -- what is told of it is its last stored state, and the answer is what was asked for
		server.store:remove(storage, object.metadata.namespace, object.metadata.name)
		return object
	end
	return server.store:put(storage, object)
end

--- The object that a request names; raises a 404.
function write.current(server, request)
	local old = server.store:get(request.resource.storage, request.namespace, request.name)
	if not old then
		fail.not_found(request.resource, request.name)
	end
	return old
end

--- object takes the place of old, as this request's.
function write.commit(server, request, object, old)
	object = write.prepare(server, request, object, old)
	if request.unmanaged then
		object.metadata.managedFields = old.metadata.managedFields
	else
		managed.update(request.resource, old, object, who(request), server.clock:timestamp())
	end
	return write.replace(server, request, object, old)
end

function write.update(server, request)
	if not request.name then
		fail.method_not_allowed()
	end
	local object = body.object(request)
	if object.metadata.name ~= nil and object.metadata.name ~= request.name then
		fail.bad_request(("the name of the object (%s) does not match the name on the URL (%s)"):format(object.metadata.name,
			request.name))
	elseif object.metadata.name == nil then
		fail.bad_request(("the name of the object (%s based on URL) was undeterminable: name must be provided"):format(request.name))
	end
	local old = write.current(server, request)
	check_uid(request, object, old)
	check_version(request, object, old)
	return write.show(request, 200, write.commit(server, request, object, old))
end

return write
