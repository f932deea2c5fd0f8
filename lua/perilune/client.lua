-- client: the API calls of `require "perilune"`: get, list, create, update, patch, delete, scale and status.
--
-- Each waits for the server and returns `value` or `nil, err` (the err table of the API contract). Misuse raises. A reference is
-- { apiVersion =, kind =, namespace =, name = }; a whole object is one too.

local k8s, core, calls = ...

local ipairs, tostring, type = ipairs, tostring, type
local misuse = core.misuse -- raises at the script's own line
local about, named, write, check_type = calls.about, calls.named, calls.write, calls.check_type

local PATCH_TYPES = {
	merge = calls.MERGE,
	json = "application/json-patch+json",
	strategic = "application/strategic-merge-patch+json",
}
local PATCH_OPTIONS = calls.options "type"

local PROPAGATIONS = { Background = true, Foreground = true, Orphan = true }
local DELETE_OPTIONS = calls.options("propagation", "preconditions", "grace_period")

-- The API server's own default for kubectl; larger lists come in pages of this many.
local PAGE_SIZE = 500
local LIST_OPTIONS = { "apiVersion", "kind", "namespace", "label_selector", "field_selector", "page_size", "timeout" }

function k8s.get(reference)
	local call = named(reference, "k8s.get")
	call.method = "GET"
	return core.request(call)
end

-- An answer with success that is no list must not be taken for an empty one.
local function is_list(page)
	local metadata = type(page) == "table" and page.kind ~= "Status" and page.metadata
	return type(metadata) == "table" and metadata.name == nil and metadata.uid == nil
end

-- Items of a list carry neither apiVersion nor kind: they get the list's. An empty Go slice is sent as null.
local function add_items(items, page, options)
	for _, item in ipairs(type(page.items) == "table" and page.items or {}) do
		if type(item) ~= "table" then
			return nil, core.err("Connection", "an item of the list is no object")
		end
		item.apiVersion, item.kind = options.apiVersion, options.kind
		items[#items + 1] = item
	end
	return items
end

-- The page's items are added; what to ask the next page with, or nil at the end.
local function take_page(items, page, options)
	if not is_list(page) then
		return nil, core.err("Connection", "the answer is no list")
	end
	local added, err = add_items(items, page, options)
	local continue = page.metadata.continue
	return added and type(continue) == "string" and continue ~= "" and continue or nil, err
end

local function pages(call, options)
	local items = k8s.array {}
	local limit = options.page_size or PAGE_SIZE
	while true do
		call.query.limit = limit and ("%d"):format(limit) or nil
		local page, err = core.request(call)
		if not err then
			call.query.continue, err = take_page(items, page, options)
			if err or not call.query.continue then
				return not err and items or nil, err
			end
		elseif err.code == 410 and call.query.continue then
			-- The server has forgotten the list's resourceVersion: all of it, at once, as client-go's pager does.
			items, limit, call.query.continue = k8s.array {}, nil, nil
		else
			return nil, err
		end
	end
end

function k8s.list(options)
	local call = about(options, "k8s.list")
	core.check_options(options, "k8s.list", LIST_OPTIONS)
	check_type(options, "label_selector", "string", "k8s.list")
	check_type(options, "field_selector", "string", "k8s.list")
	check_type(options, "page_size", "number", "k8s.list")
	if options.page_size and not (options.page_size >= 1 and options.page_size % 1 == 0) then
		misuse "k8s.list: page_size must be a whole number from 1 on"
	end
	call.method, call.name, call.timeout = "GET", nil, options.timeout
	call.query.labelSelector = options.label_selector
	call.query.fieldSelector = options.field_selector
	return pages(call, options)
end

function k8s.create(object, options)
	local call = about(object, "k8s.create")
	write(call, options)
	call.method, call.body, call.name = "POST", object, nil
	call.query.fieldManager = core.field_manager()
	return core.request(call)
end

local function update(object, options, what, subresource)
	local call = named(object, what)
	write(call, options)
	call.method, call.body, call.subresource = "PUT", object, subresource
	call.query.fieldManager = core.field_manager()
	return core.request(call)
end

local function patch(reference, change, options, what, subresource)
	local call = named(reference, what)
	if type(change) ~= "table" then
		misuse(what .. " takes the patch as a table, not a " .. type(change))
	end
	options = write(call, options, PATCH_OPTIONS)
	call.content_type = PATCH_TYPES[options.type or "merge"]
	if not call.content_type then
		misuse(what .. ": type must be merge, json or strategic, not " .. tostring(options.type))
	end
	call.method, call.subresource = "PATCH", subresource
	call.query.fieldManager = core.field_manager()
	call.body = options.type == "json" and k8s.array(change) or change
	return core.request(call)
end

function k8s.update(object, options)
	return update(object, options, "k8s.update")
end

function k8s.patch(reference, change, options)
	return patch(reference, change, options, "k8s.patch")
end

local function delete_options(options)
	if not (options.propagation or options.preconditions or options.grace_period) then
		return nil
	end
	return {
		apiVersion = "v1",
		kind = "DeleteOptions",
		propagationPolicy = options.propagation,
		preconditions = options.preconditions,
		gracePeriodSeconds = options.grace_period,
		dryRun = options.dry_run and { "All" } or nil, -- a server that gets a body does not read the query
	}
end

function k8s.delete(reference, options)
	local call = named(reference, "k8s.delete")
	options = write(call, options, DELETE_OPTIONS)
	if options.propagation and not PROPAGATIONS[options.propagation] then
		misuse "k8s.delete: propagation must be Background, Foreground or Orphan"
	end
	call.method = "DELETE"
	call.body = delete_options(options)
	return core.request(call)
end

function k8s.scale(reference, replicas, options)
	local call = named(reference, "k8s.scale")
	if type(replicas) ~= "number" or not (replicas >= 0 and replicas % 1 == 0) then
		misuse("k8s.scale takes a whole number from 0 on, not " .. tostring(replicas))
	end
	write(call, options)
	call.method, call.subresource, call.content_type = "PATCH", "scale", PATCH_TYPES.merge
	call.query.fieldManager = core.field_manager()
	call.body = { spec = { replicas = replicas } }
	return core.request(call)
end

k8s.status = {
	update = function(object, options)
		return update(object, options, "k8s.status.update", "status")
	end,
	patch = function(reference, change, options)
		return patch(reference, change, options, "k8s.status.patch", "status")
	end,
}
