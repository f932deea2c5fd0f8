--- LIST, in pages, at the resourceVersion asked for.
local k8s = require "perilune"
local base64 = require "perilune.sandbox.base64"
local fail = require "perilune.sandbox.fail"
local selector = require "perilune.sandbox.selector"
local store = require "perilune.sandbox.store"
local view = require "perilune.sandbox.view"

local list = {}

local TOO_OLD = "The provided continue parameter is too old to display a consistent list result. You can start a new list "
	.. "without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
	.. "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted "
	.. "between the time the first chunk was returned and now may show up in the list."

-- --- checks that a list and a watch share ---

local function invalid(message, field)
	list.invalid_options { fail.cause(field, "FieldValueForbidden", nil, message) }
end

--- Raises a 422 about the options of a list or a watch.
function list.invalid_options(causes)
	fail.invalid({ group = "meta.k8s.io", kind = "ListOptions", plural = "" }, "", causes)
end

local function check_match(query)
	local match, version = query.resourceVersionMatch or "", query.resourceVersion or ""
	if match == "" then
		return
	elseif version == "" then
		invalid("resourceVersionMatch is forbidden unless resourceVersion is provided", "resourceVersionMatch")
	elseif match == "Exact" and version == "0" then
		invalid('resourceVersionMatch "exact" is forbidden for resourceVersion "0"', "resourceVersionMatch")
	elseif (query.continue or "") ~= "" then
		invalid("resourceVersionMatch is forbidden when continue is provided", "resourceVersionMatch")
	end
end

--- The revision that a text names; nil for an empty one and for 0. Raises a 400.
function list.revision(text)
	if not text or text == "" or text == "0" then
		return nil
	end
	local number = text:match "^%d+$" and tonumber(text)
	if not number then
		fail.bad_request(("invalid resource version: resourceVersion: Invalid value: %q: strconv.ParseUint: parsing %q: invalid syntax"):format(text, text))
	end
	return number
end

--- Raises the answer to a version that is not there yet.
function list.check_reached(server, revision)
	if revision and revision > server.store.revision then
		local message = ("Timeout: Too large resource version: %d, current: %d"):format(revision, server.store.revision)
		fail.raise(fail.status(504, "Timeout", message, {
			causes = k8s.array { { reason = "ResourceVersionTooLarge", message = "Too large resource version" } },
			retryAfterSeconds = 1,
		}))
	end
end

--- A function of an entry for a request: its namespace and selectors. nil: all.
function list.filter(request)
	local matches = selector.of(request.resource, request.query.labelSelector, request.query.fieldSelector)
	local namespace, name = request.namespace, request.name
	if not matches and not namespace and not name then
		return nil
	end
	return function(object)
		return (not namespace or object.metadata.namespace == namespace) and (not name or object.metadata.name == name)
			and (not matches or matches(object))
	end
end

-- --- pages ---

local function encode_token(revision, key)
	return base64.encode(k8s.json.encode { v = "meta.k8s.io/v1", rv = revision, start = key .. "\0" })
end

local function decode_token(text)
	local token = k8s.json.decode(base64.decode(text) or "")
	if type(token) ~= "table" or type(token.start) ~= "string" or type(token.rv) ~= "number" then
		fail.bad_request("invalid continue token: continue key is not valid: " .. text)
	end
	return token.rv, token.start:sub(1, -2)
end

-- From the key behind `start` on.
local function behind(entries, start)
	local found = {}
	for _, one in ipairs(entries) do
		if one.key > start then
			found[#found + 1] = one
		end
	end
	return found
end

local function matching(entries, filter)
	if not filter then
		return entries
	end
	local found = {}
	for _, one in ipairs(entries) do
		if filter(one.entry.object) then
			found[#found + 1] = one
		end
	end
	return found
end

local function token_expired(server, start)
	fail.expired(TOO_OLD, { continue = encode_token(-1, start), resourceVersion = ("%d"):format(server.store.revision) })
end

-- Where a request's list begins: its revision and its key; no key at the start.
local function position(server, request)
	local query = request.query
	if (query.continue or "") ~= "" then
		local revision, start = decode_token(query.continue)
		if revision < 0 then
			return server.store.revision, start
		end
		return revision, start
	end
	local asked = list.revision(query.resourceVersion)
	list.check_reached(server, asked)
	local exact = query.resourceVersionMatch == "Exact" or ((query.resourceVersionMatch or "") == "" and query.limit)
	return asked and exact and asked or server.store.revision, nil
end

local function entries_at(server, request, revision, start)
	local entries = server.store:list(request.resource.storage, revision)
	if entries then
		return entries
	elseif start then
		token_expired(server, start)
	end
	fail.expired(("The resourceVersion for the provided list is too old."))
end

-- A list at "0" comes whole, from the watch cache.
local function limit_of(query)
	local limit = tonumber(query.limit)
	if not limit or limit <= 0 or (query.resourceVersion == "0" and (query.continue or "") == "") then
		return math.huge
	end
	return limit
end

local function has_selector(query)
	return (query.labelSelector or "") ~= "" or (query.fieldSelector or "") ~= ""
end

local function cut_page(entries, limit, revision, query)
	local metadata = { resourceVersion = ("%d"):format(revision) }
	if #entries <= limit then
		return entries, metadata
	end
	local page = {}
	for i = 1, limit do
		page[i] = entries[i]
	end
	metadata.continue = encode_token(revision, page[limit].key)
	if not has_selector(query) then
		metadata.remainingItemCount = #entries - limit
	end
	return page, metadata
end

--- The entries that a request lists, and the list's metadata.
function list.entries(server, request)
	check_match(request.query)
	local filter = list.filter(request)
	local revision, start = position(server, request)
	local entries = entries_at(server, request, revision, start)
	if start then
		entries = behind(entries, start)
	end
	return cut_page(matching(entries, filter), limit_of(request.query), revision, request.query)
end

function list.handle(server, request)
	local shown = view.of(request, true)
	local entries, metadata = list.entries(server, request)
	if request.resource.custom then
		metadata.continue = metadata.continue or "" -- only typed lists leave it out
	end
	return { status = 200, body = shown.list(request.resource, entries, metadata, request) }
end

--- GET of one object.
function list.get(server, request)
	local shown = view.of(request, false)
	local entry = server.store:bucket(request.resource.storage).entries[store.key(request.namespace, request.name)]
	if not entry then
		fail.not_found(request.resource, request.name)
	end
	return { status = 200, body = shown.json(entry, request.resource, request) }
end

list.invalid = invalid

return list
