--- CustomResourceDefinitions: what they must be, and the kinds that they bring.
local fail = require "perilune.sandbox.fail"
local k8s = require "perilune"
local managed = require "perilune.sandbox.managed"
local tree = require "perilune.sandbox.tree"
local watch = require "perilune.sandbox.watch"

local definitions = {}

local STORAGE = "apiextensions.k8s.io/customresourcedefinitions"

-- --- defaults and checks ---

--- Fills in the names that a definition leaves out.
function definitions.complete(object)
	local spec = tree.at(object, "spec")
	local names = spec and tree.at(spec, "names")
	if not names or not names.kind then
		return
	end
	names.singular = names.singular or names.kind:lower()
	names.listKind = names.listKind or names.kind .. "List"
	spec.conversion = spec.conversion or { strategy = "None" }
end

local function version_problems(spec)
	local causes, stored = {}, 0
	for i, version in ipairs(spec.versions or {}) do
		if version.storage then
			stored = stored + 1
		end
		if not tree.at(version, "schema", "openAPIV3Schema") then
			causes[#causes + 1] = fail.cause(("spec.versions[%d].schema.openAPIV3Schema"):format(i - 1), "FieldValueRequired", nil,
				"schemas are required")
		end
	end
	if stored ~= 1 then
		causes[#causes + 1] = fail.cause("spec.versions", "FieldValueInvalid", spec.versions or k8s.null,
			"must have exactly one version marked as storage version")
	end
	return causes
end

--- Causes for a 422.
function definitions.problems(_, object)
	local spec = tree.at(object, "spec") or {}
	local names = tree.at(spec, "names") or {}
	local causes = {}
	local expected = ("%s.%s"):format(names.plural or "", spec.group or "")
	if object.metadata.name ~= expected then
		causes[#causes + 1] = fail.cause("metadata.name", "FieldValueInvalid", object.metadata.name,
			("must be spec.names.plural+\".\"+spec.group"))
	end
	for _, field in ipairs { "group", "scope" } do
		if (spec[field] or "") == "" then
			causes[#causes + 1] = fail.cause("spec." .. field, "FieldValueRequired")
		end
	end
	for _, field in ipairs { "plural", "kind" } do
		if (names[field] or "") == "" then
			causes[#causes + 1] = fail.cause("spec.names." .. field, "FieldValueRequired")
		end
	end
	for _, cause in ipairs(version_problems(spec)) do
		causes[#causes + 1] = cause
	end
	return causes
end

-- --- serving ---

local function row_of(spec, version)
	local names = spec.names
	return {
		custom = spec, group = spec.group, version = version.name, kind = names.kind, plural = names.plural,
		singular = names.singular, list_kind = names.listKind, namespaced = spec.scope == "Namespaced",
		short = names.shortNames or {}, categories = names.categories or {},
		status = tree.at(version, "subresources", "status") and true or nil, scale = tree.at(version, "subresources", "scale"),
		schema = tree.at(version, "schema", "openAPIV3Schema"), columns = version.additionalPrinterColumns,
		selectable = definitions.selectable(version),
	}
end

--- The paths that a version's field selectors may name.
function definitions.selectable(version)
	local found = {}
	for i, field in ipairs(version.selectableFields or {}) do
		found[i] = field.jsonPath:gsub("^%.", "")
	end
	return found
end

-- v2 before v1, v1 before v1beta1, as discovery orders them.
local function rank(name)
	local major, stage, minor = name:match "^v(%d+)(%a*)(%d*)$"
	if not major then
		return -1
	end
	local level = stage == "" and 3 or stage == "beta" and 2 or stage == "alpha" and 1 or 0
	return level * 1e6 + tonumber(major) * 1e3 + (tonumber(minor) or 0)
end

local function drop(server, spec)
	server.registry:remove(function(resource)
		return resource.custom and resource.group == spec.group and resource.plural == spec.names.plural
	end)
end

local function serve(server, spec)
	drop(server, spec)
	local versions = {}
	for i, version in ipairs(spec.versions) do
		versions[i] = version
	end
	table.sort(versions, function(a, b)
		return rank(a.name) > rank(b.name)
	end)
	for _, version in ipairs(versions) do
		if version.served then
			server.registry:add(row_of(spec, version))
		end
	end
end

-- --- the status ---

local function stored_versions(spec)
	local stored = k8s.array {}
	for _, version in ipairs(spec.versions) do
		if version.storage then
			stored[1] = version.name
		end
	end
	return stored
end

--- The status of a new definition.
function definitions.new_status(spec)
	return {
		conditions = k8s.null, acceptedNames = { plural = "", kind = "" },
		storedVersions = stored_versions { versions = spec.versions or {} },
	}
end

local function condition(server, kind, reason, message)
	return {
		type = kind, status = "True", reason = reason, message = message, lastTransitionTime = server.clock:timestamp(),
	}
end

local function put_status(server, old, object)
	managed.update(server.registry:find("apiextensions.k8s.io", "v1", "customresourcedefinitions"), old, object, {
		manager = "kube-apiserver", apiVersion = "apiextensions.k8s.io/v1", subresource = "status",
	}, server.clock:timestamp())
	server.store:put(STORAGE, object)
end

local function establish(server, name)
	local object = server.store:get(STORAGE, nil, name)
	if not object or object.metadata.deletionTimestamp then
		return
	end
	local copy = tree.copy(object)
	copy.status = {
		acceptedNames = tree.copy(copy.spec.names), storedVersions = stored_versions(copy.spec),
		conditions = k8s.array {
			condition(server, "NamesAccepted", "NoConflicts", "no conflicts found"),
			condition(server, "Established", "InitialNamesAccepted", "the initial names have been accepted"),
		},
	}
	put_status(server, object, copy)
end

local function is_established(object)
	for _, one in ipairs(tree.at(object, "status", "conditions") or {}) do
		if one.type == "Established" and one.status == "True" then
			return tree.equal(object.status.acceptedNames, object.spec.names)
		end
	end
	return false
end

-- --- the end ---

local CLEANUP = "customresourcecleanup.apiextensions.k8s.io"

--- The definition of a custom resource, while it is being deleted.
function definitions.ending(server, resource)
	local object = resource.custom and server.store:get(STORAGE, nil, resource.qualified)
	return object and object.metadata.deletionTimestamp and object
end

function definitions.is_definition(resource)
	return resource.storage == STORAGE
end

--- The finalizers, with the one that holds a definition until its objects have gone.
function definitions.hold(old, finalizers)
	if not old.metadata.deletionTimestamp then
		finalizers[#finalizers + 1] = CLEANUP
	end
	return finalizers
end

--- What the start of its deletion adds to a definition.
function definitions.begin_deletion(server, object, old)
	object.metadata.generation, object.metadata.deletionGracePeriodSeconds = old.metadata.generation, nil
	object.status = object.status or {}
	object.status.conditions = object.status.conditions or k8s.array {}
	table.insert(object.status.conditions, condition(server, "Terminating", "InstanceDeletionPending",
		"CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"))
end

--- Says that objects of a definition that is being deleted are still there.
function definitions.note_rest(server, object)
	local copy = tree.copy(object)
	for _, one in ipairs(copy.status.conditions) do
		if one.type == "Terminating" and one.reason ~= "InstanceDeletionInProgress" then
			one.reason, one.message = "InstanceDeletionInProgress", "CustomResource deletion is in progress"
			put_status(server, object, copy)
		end
	end
end

--- Takes the finalizer away that holds a definition until its objects have gone; it goes where no other holds it.
function definitions.release(server, object)
	local copy, kept = tree.copy(object), k8s.array {}
	for _, name in ipairs(object.metadata.finalizers or {}) do
		kept[#kept + 1] = name ~= CLEANUP and name or nil
	end
	copy.metadata.finalizers = #kept > 0 and kept or nil
	if #kept == 0 then
		server.store:remove(STORAGE, nil, object.metadata.name)
	elseif #kept < #object.metadata.finalizers then
		server.store:put(STORAGE, copy)
	end
end

local function remove_objects(server, spec)
	local storage = spec.group .. "/" .. spec.names.plural
	for _, one in ipairs(server.store:list(storage)) do
		local metadata = one.entry.object.metadata
		server.store:remove(storage, metadata.namespace, metadata.name)
	end
	drop(server, spec)
	watch.finish_all(server, storage)
end

--- A definition's kind is served from its creation on, and its objects go with it.
function definitions.on_event(server, event)
	if event.storage ~= STORAGE then
		return
	end
	local object = event.entry.object
	if event.type == "DELETED" then
		remove_objects(server, object.spec)
		return
	end
	if object.metadata.deletionTimestamp then
		return
	end
	serve(server, object.spec)
	if not is_established(object) then
		server:soon(function()
			establish(server, object.metadata.name)
		end)
	end
end

return definitions
