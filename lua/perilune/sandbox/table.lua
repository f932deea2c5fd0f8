--- Objects as a table for people (kind Table), as `kubectl get` prints it.
local k8s = require "perilune"
local columns = require "perilune.sandbox.columns"

local table_view = { name = "table" }

local function row(entry, cells, include)
	local object
	if include ~= "None" then
		object = include == "Object" and entry.object
			or { kind = "PartialObjectMetadata", apiVersion = "meta.k8s.io/v1", metadata = entry.object.metadata }
	end
	return { cells = k8s.array(cells), object = object }
end

local function make(resource, entries, metadata, definitions, request)
	local found = columns.of(resource)
	local rows = k8s.array {}
	for i, one in ipairs(entries) do
		rows[i] = row(one.entry, found.cells(one.entry.object, request.now), request.query.includeObject)
	end
	return k8s.json.encode {
		kind = "Table", apiVersion = "meta.k8s.io/v1", metadata = metadata,
		columnDefinitions = definitions and found.definitions or k8s.null, rows = rows,
	}
end

function table_view.json(entry, resource, request, later)
	local metadata = { resourceVersion = entry.object.metadata.resourceVersion }
	return make(resource, { { entry = entry } }, metadata, not later, request)
end

function table_view.list(resource, entries, metadata, request)
	return make(resource, entries, metadata, true, request)
end

return table_view
