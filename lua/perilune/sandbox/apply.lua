--- Server-side apply: what a manager says of an object is laid over it, and what it no longer says goes.
local k8s = require "perilune"
local body = require "perilune.sandbox.body"
local fail = require "perilune.sandbox.fail"
local fieldset = require "perilune.sandbox.fieldset"
local managed = require "perilune.sandbox.managed"
local shape = require "perilune.sandbox.shape"
local tree = require "perilune.sandbox.tree"
local write = require "perilune.sandbox.write"

local apply = {}

-- --- laying over ---

local lay

local function lay_items(live, config, list_shape)
	local live_items, live_order = {}, {}
	if tree.is_array(live) then
		live_items, live_order = fieldset.items(live, list_shape)
	end
	local new_items, new_order = fieldset.items(config, list_shape)
	if not live_items or not new_items then
		return tree.copy(config)
	end
	local result = k8s.array {}
	for _, element in ipairs(live_order) do
		local item = new_items[element]
		result[#result + 1] = item == nil and live_items[element] or lay(live_items[element], item, list_shape.item or {})
	end
	for _, element in ipairs(new_order) do
		if live_items[element] == nil then
			result[#result + 1] = tree.copy(new_items[element])
		end
	end
	return result
end

lay = function(live, config, value_shape)
	local kind = fieldset.kind_of(config, value_shape)
	if kind == "whole" then
		return tree.copy(config)
	elseif kind ~= "object" then
		return lay_items(live, config, value_shape)
	end
	local result = tree.is_object(live) and tree.shallow(live) or {}
	for name, member in pairs(config) do
		result[name] = lay(result[name], member, shape.member(value_shape, name))
	end
	return result
end

-- --- taking away ---

local take

local function take_kid(value, element, kid, value_shape, others)
	local inner, inner_shape = fieldset.child(value, value_shape, element)
	local theirs = others and others.kids[element]
	if inner == nil then
		return value
	elseif kid.member and fieldset.is_empty(theirs) then
		inner = nil
	else
		inner = take(inner, kid, inner_shape, theirs)
	end
	local name = element:match "^f:(.*)$"
	if name then
		value[name] = inner
		return value
	end
	return fieldset.replace_item(value, value_shape, element, inner)
end

-- A copy without the set's fields, except those that others own too.
take = function(value, set, value_shape, others)
	local result = tree.shallow(value)
	for element, kid in pairs(set.kids) do
		result = take_kid(result, element, kid, value_shape, others)
	end
	if next(result) == nil then
		return nil
	end
	return result
end

-- --- conflicts ---

local function version_of(entry)
	return entry.operation == "Update" and (" using %s"):format(entry.apiVersion) or ""
end

local function manager_text(entry)
	local text = ("%q"):format(entry.manager)
	if entry.operation == "Update" then
		text = text .. (entry.subresource and (" with subresource %q"):format(entry.subresource) or "") .. version_of(entry)
	end
	return text
end

local function find_conflicts(entries, mine, differing)
	local found = {}
	for _, entry in ipairs(entries) do
		if entry ~= mine then
			for _, text in ipairs(fieldset.texts(fieldset.both(entry.set, differing))) do
				found[#found + 1] = { entry = entry, field = text }
			end
		end
	end
	return found
end

local function conflict_message(found)
	if #found == 1 then
		return ("Apply failed with 1 conflict: conflict with %s: %s"):format(manager_text(found[1].entry), found[1].field)
	end
	local lines, last = {}, nil
	for _, one in ipairs(found) do
		if one.entry ~= last then
			lines[#lines + 1] = ("conflicts with %s:"):format(manager_text(one.entry))
			last = one.entry
		end
		lines[#lines + 1] = "- " .. one.field
	end
	return ("Apply failed with %d conflicts: %s"):format(#found, table.concat(lines, "\n"))
end

local function raise_conflicts(found)
	local causes = k8s.array {}
	for i, one in ipairs(found) do
		causes[i] = { reason = "FieldManagerConflict", message = "conflict with " .. manager_text(one.entry), field = one.field }
	end
	fail.raise(fail.status(409, "Conflict", conflict_message(found), { causes = causes }))
end

-- --- the whole ---

local function check_options(request)
	if (request.query.fieldManager or "") == "" then
		fail.invalid({ group = "meta.k8s.io", kind = "PatchOptions", plural = "" }, "",
			{ fail.cause("fieldManager", "FieldValueRequired", nil, "is required for apply patch") })
	end
end

local function read_config(request)
	local config, err = k8s.yaml.decode(request.body)
	if type(config) ~= "table" then
		fail.bad_request("error decoding YAML: " .. tostring(err))
	end
	body.check_type(request.resource, config, request.body)
	if type(config.metadata) ~= "table" then
		config.metadata = {}
	end
	local name = config.metadata.name
	if name and name ~= request.name then
		fail.bad_request(("the name of the object (%s based on URL) was undeterminable"):format(name))
	end
	if config.metadata.managedFields and #config.metadata.managedFields > 0 then
		fail.bad_request("metadata.managedFields must be nil")
	end
	config.metadata.name, config.metadata.managedFields = request.name, nil
	return tree.drop_nulls(config)
end

local function others_of(entries, mine)
	local set = fieldset.decode {}
	for _, entry in ipairs(entries) do
		if entry ~= mine then
			set = fieldset.union(set, entry.set)
		end
	end
	return set
end

-- What the live object becomes, and who owns what then.
local function merge(request, live, config)
	local root = shape.of(request.resource)
	local entries = managed.read(live)
	local mine = managed.entry(entries, {
		manager = request.query.fieldManager, operation = "Apply", apiVersion = request.resource.api_version,
		subresource = request.subresource,
	})
	local wanted = managed.strip(fieldset.configured(config, root))
	local merged = lay(live, config, root)
	local differing = fieldset.both(wanted, fieldset.changed(live, merged, root))
	local conflicts = find_conflicts(entries, mine, differing)
	if #conflicts > 0 and request.query.force ~= "true" then
		raise_conflicts(conflicts)
	end
	for _, conflict in ipairs(conflicts) do
		conflict.entry.set = fieldset.minus(conflict.entry.set, differing)
	end
	local dropped = fieldset.minus(mine.set, wanted)
	merged = take(merged, dropped, root, fieldset.union(others_of(entries, mine), wanted)) or {}
	local owned_before = mine.set
	mine.set = wanted
	return merged, entries, mine, not tree.equal(owned_before, wanted)
end

local function create(server, request, config)
	write.prepare_new(server, request, config)
	local entries = {}
	local mine = managed.entry(entries, {
		manager = request.query.fieldManager, operation = "Apply", apiVersion = request.resource.api_version,
	})
	mine.set, mine.time = request.wanted, server.clock:timestamp()
	managed.write(config, entries)
	return write.show(request, 201, write.store_new(server, request, config))
end

local function update(server, request, config, live)
	local merged, entries, mine, ownership_changed = merge(request, live, config)
	local object = write.prepare(server, request, tree.copy(merged), live)
	local changed = ownership_changed or not tree.equal(merged, live)
	mine.time = changed and server.clock:timestamp() or mine.time
	managed.take(entries, fieldset.decode {}, mine, object, shape.of(request.resource))
	managed.write(object, entries)
	if not changed then
		return write.show(request, 200, live)
	end
	return write.show(request, 200, write.replace(server, request, object, live, ownership_changed))
end

function apply.handle(server, request)
	check_options(request)
	local config = read_config(request)
	local live = server.store:get(request.resource.storage, request.namespace, request.name)
	local said = config.metadata.resourceVersion
	if said and live and said ~= live.metadata.resourceVersion then
		fail.conflict(request.resource, request.name)
	elseif not live and request.subresource then
		fail.not_found(request.resource, request.name)
	end
	if live then
		return update(server, request, config, live)
	end
	request.wanted = managed.strip(fieldset.configured(config, shape.of(request.resource)))
	return create(server, request, config)
end

return apply
