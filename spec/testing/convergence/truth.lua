--- truth: what an informer must hold in the end, from the server itself, and how its cache differs from that.
--
--   truth.differences(informer)     informer: { options =, handle = }; texts, and the cache as a map by key
--   truth.transforms                what a story's informer may do to its objects, by name
--   truth.is_wanted(object)         what handlers with a filter want
--   truth.wanted(map)               those of the map
local judges = require "judge"
local k8s = require "perilune"
local schedule = require "schedule"

local truth = {}

-- --- projections ---

local function at(object, path)
	for name in path:gmatch "[^.]+" do
		object = type(object) == "table" and object[name] or nil
	end
	return object
end

-- The table that holds what the path names, made where `make` says so; and the last name.
local function holder(object, path, make)
	local parent, last = path:match "^(.*)%.([^.]+)$"
	for name in (parent or ""):gmatch "[^.]+" do
		if make then
			object[name] = object[name] or {}
		end
		object = type(object) == "table" and object[name] or nil
	end
	return object, last or path
end

local function drop(object, path)
	local inner, name = holder(object, path)
	if type(inner) == "table" then
		inner[name] = nil
	end
end

local function keep(object, paths)
	local kept = { apiVersion = object.apiVersion, kind = object.kind }
	for _, path in ipairs(paths) do
		local value = at(object, path)
		if value ~= nil then
			local inner, name = holder(kept, path, true)
			inner[name] = value
		end
	end
	return kept
end

truth.transforms = {
	short = function(object)
		object.data = object.data and { turn = object.data.turn }
		return object
	end,
}

-- An object as the informer's options let the cache hold it.
local function projected(object, options)
	if options.transform then
		object = truth.transforms[options.transform](object)
	end
	if options.metadata_only then
		object = keep(object, { "metadata" })
	end
	if options.keep then
		return keep(object, options.keep)
	end
	for _, path in ipairs(options.drop or { "metadata.managedFields" }) do
		drop(object, path)
	end
	return object
end

-- --- the server ---

local function namespaces_of(options)
	return type(options.namespace) == "table" and options.namespace or { options.namespace or false }
end

local function server_map(options)
	local found = {}
	for _, namespace in ipairs(namespaces_of(options)) do
		local objects = assert(k8s.list {
			apiVersion = options.apiVersion, kind = options.kind, namespace = namespace or nil, label_selector = options.label_selector,
		})
		for _, object in ipairs(objects) do
			found[judges.key(object)] = projected(object, options)
		end
	end
	return found
end

-- --- the cache ---

local function count_of(map)
	local count = 0
	for _ in pairs(map) do
		count = count + 1
	end
	return count
end

local function selected(map, accept)
	local found = {}
	for key, object in pairs(map) do
		if accept(object) then
			found[key] = object
		end
	end
	return found
end

function truth.is_wanted(object)
	return at(object, "metadata.labels.app") == "web"
end

function truth.wanted(map)
	return selected(map, truth.is_wanted)
end

-- The ways to read a part of a cache, and which part it is: an array of { query =, accept = }.
local function partial_reads()
	local found = {}
	for _, app in ipairs { "web", "db" } do
		local function accept(object)
			return at(object, "metadata.labels.app") == app
		end
		table.insert(found, { query = { index = { app = app } }, accept = accept })
		table.insert(found, { query = { label_selector = "app=" .. app }, accept = accept })
	end
	for _, namespace in ipairs(schedule.namespaces) do
		table.insert(found, { query = { namespace = namespace }, accept = function(object)
			return object.metadata.namespace == namespace
		end })
	end
	return found
end

local READS = partial_reads()

local function append(all, texts)
	for _, text in ipairs(texts) do
		all[#all + 1] = text
	end
end

local function check_reads(found, handle, map)
	for _, read in ipairs(READS) do
		append(found, judges.differences(judges.by_key(handle:list(read.query)), "a part of the cache",
			selected(map, read.accept), "a scan of it"))
	end
	local count = count_of(map)
	if handle:count() ~= count or #handle:keys() ~= count or #handle:list() ~= count then
		found[#found + 1] = ("%d objects are counted as %d, with %d keys and %d in the list"):format(count, handle:count(),
			#handle:keys(), #handle:list())
	end
end

function truth.differences(informer)
	local server = server_map(informer.options)
	local map = judges.by_key(informer.handle:list())
	local found = judges.differences(map, "the cache", server, "the server")
	check_reads(found, informer.handle, map)
	return found, map
end

return truth
