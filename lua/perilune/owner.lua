-- owner: k8s.set_owner, which writes an ownerReference into an object before it is sent. It asks nobody.

local k8s, core = ...

local ipairs, type = ipairs, type
local misuse = core.misuse

local OPTIONS = { "controller", "block_owner_deletion" }

local function check_object(object, what)
	if type(object) ~= "table" or type(object.apiVersion) ~= "string" or type(object.kind) ~= "string"
		or type(object.metadata) ~= "table" then
		misuse(("k8s.set_owner: the %s must be an object with apiVersion, kind and metadata"):format(what))
	end
end

local function name_of(object)
	local namespace, name = object.metadata.namespace, object.metadata.name or object.metadata.generateName or "?"
	return ("%s %s%s"):format(object.kind, namespace and namespace .. "/" or "", name)
end

local function check_owner(owner)
	check_object(owner, "owner")
	if type(owner.metadata.name) ~= "string" then
		misuse "k8s.set_owner: the owner has no name"
	end
	if type(owner.metadata.uid) ~= "string" then
		misuse(("k8s.set_owner: %s has no uid: take the owner from an informer, from k8s.get or from the answer of a write")
			:format(name_of(owner)))
	end
end

local function option(options, name)
	local value = options[name]
	if value ~= nil and type(value) ~= "boolean" then
		misuse(("k8s.set_owner: %s must be a boolean, not a %s"):format(name, type(value)))
	end
	return value ~= false
end

-- The namespace that the object has or will get; nil for a cluster-scoped one.
local function namespace_of(object)
	if object.metadata.namespace or core.is_namespaced(object.apiVersion, object.kind) == false then
		return object.metadata.namespace
	end
	return core.default_namespace()
end

-- The garbage collector looks for an owner in the object's own namespace, and where it finds none deletes the object.
local function check_namespaces(object, owner)
	local theirs, ours = owner.metadata.namespace, namespace_of(object)
	if not theirs or theirs == ours then
		return
	elseif ours then
		misuse(("k8s.set_owner: %s can't be the owner of %s, which is in another namespace"):format(name_of(owner), name_of(object)))
	end
	misuse(("k8s.set_owner: %s can't be the owner of %s, which has no namespace"):format(name_of(owner), name_of(object)))
end

local function group_of(api_version)
	return api_version:match "^(.*)/" or ""
end

local function is_same(one, other)
	return one.kind == other.kind and one.name == other.name and group_of(one.apiVersion) == group_of(other.apiVersion)
end

local function references_of(object)
	local references = object.metadata.ownerReferences
	if references == nil or references == k8s.null then
		return k8s.array {}
	elseif type(references) ~= "table" then
		misuse("k8s.set_owner: ownerReferences must be an array, not a " .. type(references))
	end
	for i, one in ipairs(references) do
		if type(one) ~= "table" or type(one.apiVersion) ~= "string" or type(one.kind) ~= "string" or type(one.name) ~= "string" then
			misuse(("k8s.set_owner: ownerReferences[%d] of the object must have apiVersion, kind and name"):format(i))
		end
	end
	return references
end

-- Where the reference belongs: in the place of the one to the same owner, of which there may be an older self, or behind all.
local function place_of(references, reference, object)
	local place
	for i, other in ipairs(references) do
		if is_same(other, reference) then
			place = place or i
		elseif reference.controller and other.controller == true then
			misuse(("k8s.set_owner: %s is controlled by %s %s already"):format(name_of(object), other.kind, other.name))
		end
	end
	return place or #references + 1
end

function k8s.set_owner(object, owner, options)
	options = options or {}
	check_object(object, "object")
	check_owner(owner)
	core.check_options(options, "k8s.set_owner", OPTIONS)
	check_namespaces(object, owner)
	local references = references_of(object)
	local reference = {
		apiVersion = owner.apiVersion,
		kind = owner.kind,
		name = owner.metadata.name,
		uid = owner.metadata.uid,
		controller = option(options, "controller") or nil,
		blockOwnerDeletion = option(options, "block_owner_deletion") or nil,
	}
	references[place_of(references, reference, object)] = reference
	object.metadata.ownerReferences = references
	return object
end
