--- How an answer shows objects: whole, only their metadata, or as a table for people. Chosen by the Accept header.
--
-- A view: { kind =, list_kind =, api_version =, content_type =, object = function(entry, resource) → JSON text }.
local k8s = require "perilune"
local fail = require "perilune.sandbox.fail"
local store = require "perilune.sandbox.store"
local table_view = require "perilune.sandbox.table"

local view = {}

-- --- the Accept header ---

local function parameters(text)
	local found = {}
	for name, value in text:gmatch ";%s*(%w+)=([^;%s]*)" do
		found[name] = value
	end
	return found
end

-- The media ranges of an Accept header in order: { type =, as =, g =, v = }.
function view.ranges(accept)
	local found = {}
	for range in (accept or "*/*"):gmatch "[^,]+" do
		local entry = parameters(range)
		entry.type = range:match "^%s*([^;%s]+)"
		found[#found + 1] = entry
	end
	return found
end

local JSON = { ["application/json"] = true, ["*/*"] = true, ["application/*"] = true }

-- --- whole objects ---

local whole = { name = "whole" }

-- Items of another version than the stored one say theirs.
function whole.json(entry, resource)
	return store.json(entry, resource.api_version)
end

-- The typed kinds leave their name out of a list's items; custom ones keep it.
local function item(entry, resource)
	return resource.custom and whole.json(entry, resource) or store.bare(entry)
end

function whole.list(resource, entries, metadata)
	local items = {}
	for i, one in ipairs(entries) do
		items[i] = item(one.entry, resource)
	end
	return ('{"kind":%s,"apiVersion":%s,"metadata":%s,"items":[%s]}'):format(k8s.json.encode(resource.list_kind),
		k8s.json.encode(resource.api_version), k8s.json.encode(metadata), table.concat(items, ","))
end

-- --- metadata only ---

local partial = { name = "partial" }

local function metadata_of(entry)
	return { kind = "PartialObjectMetadata", apiVersion = "meta.k8s.io/v1", metadata = entry.object.metadata }
end

function partial.json(entry)
	return k8s.json.encode(metadata_of(entry))
end

function partial.list(_, entries, metadata)
	local items = {}
	for i, one in ipairs(entries) do
		items[i] = partial.json(one.entry)
	end
	return ('{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":%s,"items":[%s]}'):format(
		k8s.json.encode(metadata), table.concat(items, ","))
end

-- --- choosing ---

local NOT_ACCEPTABLE = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
	.. "application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"

local VIEWS = { PartialObjectMetadata = partial, PartialObjectMetadataList = partial, Table = table_view }

local function suits(range, list)
	if not JSON[range.type] then
		return nil
	end
	if not range.as then
		return whole
	end
	local found = range.g == "meta.k8s.io" and range.v == "v1" and VIEWS[range.as]
	if found == partial and (range.as == "PartialObjectMetadataList") ~= list then
		return nil
	end
	return found or nil
end

--- The view that a request asks for. list: of a whole list, not of single objects. Raises a 406.
function view.of(request, list)
	for _, range in ipairs(view.ranges(request.headers.accept)) do
		local found = suits(range, list)
		if found then
			return found
		end
	end
	fail.raise(fail.status(406, "NotAcceptable", NOT_ACCEPTABLE, {}))
end

view.whole = whole

return view
