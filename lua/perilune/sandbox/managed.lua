--- managedFields: who wrote which field last.
--
-- An entry in work: { manager =, operation = "Update" | "Apply", apiVersion =, subresource =, time =, set = }.
local k8s = require "perilune"
local fieldset = require "perilune.sandbox.fieldset"
local shape = require "perilune.sandbox.shape"
local tree = require "perilune.sandbox.tree"

local managed = {}

-- What nobody owns: the server writes it, or it says which object this is.
local OF_NOBODY = {
	"name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
	"resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds",
}

--- Without the fields that nobody owns.
function managed.strip(set)
	set.kids["f:apiVersion"], set.kids["f:kind"] = nil, nil
	local metadata = set.kids["f:metadata"]
	if metadata then
		for _, name in ipairs(OF_NOBODY) do
			metadata.kids["f:" .. name] = nil
		end
		metadata.member = false
		if fieldset.is_empty(metadata) then
			set.kids["f:metadata"] = nil
		end
	end
	return set
end

--- The entries of an object.
function managed.read(object)
	local entries = {}
	for i, entry in ipairs(tree.at(object, "metadata", "managedFields") or {}) do
		entries[i] = {
			manager = entry.manager, operation = entry.operation, apiVersion = entry.apiVersion,
			subresource = entry.subresource, time = entry.time, set = fieldset.decode(entry.fieldsV1),
		}
	end
	return entries
end

local function before(a, b)
	for _, name in ipairs { "operation", "time", "manager", "apiVersion", "subresource" } do
		local x, y = a[name] or "", b[name] or ""
		if x ~= y then
			return x < y
		end
	end
	return false
end

--- Puts the entries into the object; nil where there are none.
function managed.write(object, entries)
	local kept = {}
	for _, entry in ipairs(entries) do
		if not fieldset.is_empty(entry.set) then
			kept[#kept + 1] = entry
		end
	end
	table.sort(kept, before)
	local list = k8s.array {}
	for i, entry in ipairs(kept) do
		list[i] = {
			manager = entry.manager, operation = entry.operation, apiVersion = entry.apiVersion, time = entry.time,
			subresource = entry.subresource, fieldsType = "FieldsV1", fieldsV1 = fieldset.encode(entry.set),
		}
	end
	object.metadata.managedFields = #list > 0 and list or nil
end

local function is_same(entry, who)
	return entry.manager == who.manager and entry.operation == who.operation and entry.apiVersion == who.apiVersion
		and entry.subresource == who.subresource
end

--- The entry of a manager, added where there is none.
function managed.entry(entries, who)
	for _, entry in ipairs(entries) do
		if is_same(entry, who) then
			return entry
		end
	end
	local entry = {
		manager = who.manager, operation = who.operation, apiVersion = who.apiVersion, subresource = who.subresource,
		set = fieldset.decode {},
	}
	entries[#entries + 1] = entry
	return entry
end

--- Who a request writes as.
function managed.manager(request)
	local name = request.query.fieldManager
	if not name or name == "" then
		name = (request.headers["user-agent"] or "unknown"):match "^[^/]*"
	end
	return name
end

--- Takes fields from everybody but one entry, and what the object no longer has from all.
function managed.take(entries, set, except, object, root)
	for _, entry in ipairs(entries) do
		if entry ~= except then
			entry.set = fieldset.minus(entry.set, set)
		end
		entry.set = fieldset.existing(entry.set, object, root)
	end
end

--- After a write that is no apply: who = { manager =, apiVersion =, subresource = }; old may be nil.
function managed.update(resource, old, new, who, now)
	local root = shape.of(resource)
	local cleared = type(new.metadata.managedFields) == "table" and #new.metadata.managedFields == 0
	local entries = old and not cleared and managed.read(old) or {}
	local set = managed.strip(fieldset.changed(old, new, root))
	who.operation = "Update"
	if not fieldset.is_empty(set) then
		local entry = managed.entry(entries, who)
		entry.set = fieldset.union(entry.set, set)
		entry.time = now
		managed.take(entries, set, entry, new, root)
	else
		managed.take(entries, set, nil, new, root)
	end
	managed.write(new, entries)
end

return managed
