--- sandbox: an in-memory API server. Requests in, whole answers and streams out; no network in here.
--
-- require "perilune.sandbox"(io, options) makes one. io is the world: now(), wall(), alarm(seconds), log(text).
-- options: address, for /api.
--
-- The server's parts: registry (which resources), store (objects and their history), watchers (open streams by storage),
-- clock, faults, ordered (those that questions ordered, by number), requests (what was asked, in order; the latest some
-- thousands), rights (what all of those needed).
local answers = require "perilune.sandbox.answer"
local clock = require "perilune.sandbox.clock"
local collector = require "perilune.sandbox.collector"
local definitions = require "perilune.sandbox.definitions"
local ending = require "perilune.sandbox.ending"
local faults = require "perilune.sandbox.faults"
local namespaces = require "perilune.sandbox.namespaces"
local registry = require "perilune.sandbox.registry"
local rights = require "perilune.sandbox.rights"
local router = require "perilune.sandbox.router"
local store = require "perilune.sandbox.store"
local watch = require "perilune.sandbox.watch"

local Server = {}
Server.__index = Server

-- What follows from a write, whoever wrote.
local function on_event(server, event)
	watch.tell(server, event) -- first: what the others write comes after it
	definitions.on_event(server, event)
	ending.on_event(server, event)
	namespaces.on_event(server, event)
	collector.on_event(server, event)
end

--- Runs fn after the present request: what controllers would do in a real cluster.
function Server:soon(fn)
	self.pending = self.pending + 1
	self.clock:after(0, function()
		self.pending = self.pending - 1
		fn()
	end)
end

--- Whether something is still to follow from what was done.
function Server:is_idle()
	return self.pending == 0
end

--- A request; wire has the functions of the host's answer (reply, open, push, finish, cut, reset, silence, slow). It is
-- answered now or later. Returns a function to be called when the client has gone.
function Server:handle(method, path, query, headers, body, wire)
	local answer = answers.new(wire)
	router.handle(self, {
		method = method, path = path, query = query, headers = headers, body = body or "", too_large = not body, answer = answer,
	})
	return function()
		answer.on_gone()
	end
end

--- A request from inside the process: status, and the decoded body.
function Server:call(method, path, body, headers)
	return router.call(self, method, path, body, headers)
end

--- Orders a fault; see faults.lua.
function Server:fault(order)
	return self.faults:add(order)
end

--- As after a restart: no history, and all streams are cut.
function Server:restart()
	self.store:forget()
	for _, open in pairs(self.watchers) do
		for watcher in pairs(open) do
			watcher:close()
			watcher.answer.wire:reset()
		end
	end
end

return function(io, options)
	math.randomseed(io.wall() * 1e6 % 2 ^ 31)
	local server = setmetatable({
		io = io, address = options.address, clock = clock.new(io), registry = registry.new(), store = store.new(),
		watchers = {}, faults = faults.new(), ordered = {}, requests = {}, rights = rights.new(), pending = 0,
	}, Server)
	collector.start(server)
	server.store.on_event = function(event)
		on_event(server, event)
	end
	namespaces.start(server)
	watch.start_bookmarks(server)
	return server
end
