--- WATCH: the streams that are open, and what each is told of an event.
local k8s = require "perilune"
local fail = require "perilune.sandbox.fail"
local list = require "perilune.sandbox.list"
local store = require "perilune.sandbox.store"
local view = require "perilune.sandbox.view"

local watch = {}

local BOOKMARK_SECONDS = 60
local LEAST_TIMEOUT = 1800 -- where the client asks for none, it is from this to twice this

-- --- one stream ---

local Watcher = {}
Watcher.__index = Watcher

local function line(kind, json)
	return ('{"type":"%s","object":%s}\n'):format(kind, json)
end

function Watcher:send(kind, entry)
	local json = self.view.json(entry, self.resource, self.request, self.sent)
	self.sent = true
	self.answer:push(line(kind, json), kind)
end

function Watcher:send_status(status)
	self.answer:push(line("ERROR", k8s.json.encode(status)), "ERROR")
end

-- What an event is to a client that sees only what its selectors match; nil where it is nothing.
local function seen(event, filter)
	local now = event.type ~= "DELETED" and (not filter or filter(event.entry.object))
	local before = event.old and (not filter or filter(event.old.object))
	if now then
		return before and "MODIFIED" or "ADDED", event.entry
	elseif before and event.type == "DELETED" then
		return "DELETED", event.entry
	elseif before then
		return "DELETED", { object = store.at_revision(event.old.object, event.revision) }
	end
end

function Watcher:tell(event)
	local kind, entry = seen(event, self.filter)
	if kind then
		self:send(kind, entry)
	end
end

function Watcher:bookmark(revision, annotations)
	local object = {
		kind = self.resource.kind, apiVersion = self.resource.api_version,
		metadata = { resourceVersion = ("%d"):format(revision), annotations = annotations },
	}
	self:send("BOOKMARK", { object = object })
end

function Watcher:close()
	self.server.clock:cancel(self.timer)
	local open = self.server.watchers[self.resource.storage]
	if open then
		open[self] = nil
	end
end

function Watcher:finish()
	self:close()
	self.answer:finish()
end

-- --- opening one ---

local function is_true(text)
	return text ~= nil and text ~= "false" and text ~= "0"
end
watch.is_true = is_true

local function check_options(query)
	local initial, match = query.sendInitialEvents, query.resourceVersionMatch or ""
	local causes = {}
	local function forbid(text)
		causes[#causes + 1] = fail.cause("resourceVersionMatch", "FieldValueForbidden", nil, text)
	end
	if match ~= "" and not initial then
		forbid "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
	elseif initial and match == "" then
		forbid "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
	end
	if match ~= "" and match ~= "NotOlderThan" then
		causes[#causes + 1] = fail.cause("resourceVersionMatch", "FieldValueNotSupported", match, 'supported values: "NotOlderThan"')
	end
	if #causes > 0 then
		list.invalid_options(causes)
	end
end

local function too_old(revision, server)
	return fail.status(410, "Expired", ("too old resource version: %d (%d)"):format(revision, server.store.floor))
end

local function send_state(watcher)
	for _, one in ipairs(watcher.server.store:list(watcher.resource.storage)) do
		if not watcher.filter or watcher.filter(one.entry.object) then
			watcher:send("ADDED", one.entry)
		end
	end
end

local function send_since(watcher, revision)
	local events = watcher.server.store:since(watcher.resource.storage, revision)
	if not events then
		watcher:send_status(too_old(revision, watcher.server))
		return false
	end
	for _, event in ipairs(events) do
		watcher:tell(event)
	end
	return true
end

-- What comes before the first new event; false where the stream ends with it.
local function send_beginning(watcher, query)
	local revision = list.revision(query.resourceVersion)
	if is_true(query.sendInitialEvents) then
		send_state(watcher)
		if is_true(query.allowWatchBookmarks) then
			watcher:bookmark(watcher.server.store.revision, { ["k8s.io/initial-events-end"] = "true" })
		end
		return true
	elseif query.sendInitialEvents and not revision then
		return true
	elseif revision then
		return send_since(watcher, revision)
	end
	send_state(watcher)
	return true
end

local function timeout_of(query)
	local seconds = tonumber(query.timeoutSeconds)
	if seconds and seconds > 0 then
		return seconds
	end
	return LEAST_TIMEOUT * (1 + math.random())
end

local function open_stream(server, watcher)
	local open = server.watchers[watcher.resource.storage] or {}
	server.watchers[watcher.resource.storage] = open
	open[watcher] = true
	watcher.timer = server.clock:after(timeout_of(watcher.request.query), function()
		watcher:finish()
	end)
	watcher.answer.on_gone = function()
		watcher:close()
	end
end

--- Answers with a stream that goes on until its time is over or the client closes.
function watch.handle(server, request)
	check_options(request.query)
	local filter = list.filter(request)
	if is_true(request.query.sendInitialEvents) then
		list.check_reached(server, list.revision(request.query.resourceVersion))
	end
	local watcher = setmetatable({
		server = server, request = request, resource = request.resource, filter = filter, answer = request.answer,
		view = view.of(request, false), bookmarks = is_true(request.query.allowWatchBookmarks),
	}, Watcher)
	request.answer:open(200, { ["Content-Type"] = "application/json" })
	if send_beginning(watcher, request.query) then
		open_stream(server, watcher)
	else
		request.answer:finish()
	end
end

-- --- all of them ---

--- Tells the open streams of a kind about an event.
function watch.tell(server, event)
	for watcher in pairs(server.watchers[event.storage] or {}) do
		watcher:tell(event)
	end
end

--- Ends all streams of a kind.
function watch.finish_all(server, storage)
	for watcher in pairs(server.watchers[storage] or {}) do
		watcher:finish()
	end
end

local function bookmark_all(server)
	for _, open in pairs(server.watchers) do
		for watcher in pairs(open) do
			if watcher.bookmarks then
				watcher:bookmark(server.store.revision)
			end
		end
	end
end

--- Bookmarks go to all streams that want them, once a minute.
function watch.start_bookmarks(server)
	server.clock:after(BOOKMARK_SECONDS, function()
		bookmark_all(server)
		watch.start_bookmarks(server)
	end)
end

return watch
