--- players: a story's informers and handlers, which come and go at their times.
--
--   local cast = players.play(story)     returns when the last of them has begun
--   cast:problems()                      what handlers were told that they must not be told
--   cast:differences()                   what is not (yet) as the server has it
--   cast:versions()                      the resourceVersions of the informers: an array for each
local judges = require "judge"
local k8s = require "perilune"
local schedule = require "schedule"
local truth = require "truth"
local writes = require "writes"

local players = {}

local Cast = {}
Cast.__index = Cast

-- --- handlers ---

local function is_turn(every, count)
	return every ~= nil and count % every == 0
end

-- A write of the script's own, once for each turn of an object; it may fail.
local function mark(object)
	local annotations = object.metadata.annotations
	if annotations and annotations.mark ~= annotations.turn then
		k8s.patch(object, { metadata = { annotations = { mark = annotations.turn } } })
	end
end

local function act(cast, player, object, event)
	player.calls = player.calls + 1
	if player.removed then
		player.judge:problem "a call after it was removed"
	end
	player.judge:event(object, event)
	if is_turn(player.plan.nap_every, player.calls) then
		k8s.sleep(player.plan.nap)
	end
	if is_turn(player.plan.marks, player.calls) and event.type ~= "delete" then
		mark(object)
	end
	if is_turn(player.plan.writes, player.calls) then
		writes.write(cast.informers, player, object)
	end
	if is_turn(player.plan.fails, player.calls) then
		error "a handler that fails"
	end
end

local function add_handler(cast, player)
	local plan = player.plan
	player.judge = judges.new {
		has_synced = function()
			return player.registration ~= nil and player.registration:has_synced()
		end,
	}
	local function on_event(object, event)
		act(cast, player, object, event)
	end
	player.registration = cast.informers[plan.informer].handle:add_event_handler {
		add = on_event, update = on_event, delete = on_event, every_event = plan.every_event, resync = plan.resync,
		filter = plan.filter and truth.is_wanted or nil,
	}
	cast.players[#cast.players + 1] = player
end

local function remove_handler(player)
	player.registration:remove()
	player.removed = true
end

-- --- the times ---

local function add_entry(entries, at, fn)
	entries[#entries + 1] = { at = at, fn = fn }
end

local function add_player(entries, cast, plan)
	local player = { plan = plan, calls = 0, writes = 0 }
	local begins = cast.story.informers[plan.informer].at
	add_entry(entries, math.max(plan.at, begins), function()
		add_handler(cast, player)
	end)
	if plan.remove_at then
		add_entry(entries, math.max(plan.remove_at, begins), function()
			remove_handler(player)
		end)
	end
end

local function informer_of(cast, plan)
	local options = {}
	for name, value in pairs(plan.options) do
		options[name] = name == "transform" and truth.transforms[value] or value
	end
	return { options = plan.options, handle = cast.factory:informer(options) }
end

local function timeline(cast)
	local entries = {}
	for i, plan in ipairs(cast.story.informers) do
		add_entry(entries, plan.at, function()
			cast.informers[i] = informer_of(cast, plan)
		end)
	end
	for _, plan in ipairs(cast.story.handlers) do
		add_player(entries, cast, plan)
	end
	return schedule.by_time(entries)
end

function players.play(story)
	local cast = setmetatable({ story = story, factory = k8s.factory {}, informers = {}, players = {} }, Cast)
	local now = 0
	for _, entry in ipairs(timeline(cast)) do
		if entry.at > now then
			cast.factory:start()
			k8s.sleep(entry.at - now)
			now = entry.at
		end
		entry.fn()
	end
	cast.factory:start()
	return cast
end

-- --- the verdict ---

local function append(found, what, texts)
	for _, text in ipairs(texts) do
		found[#found + 1] = what .. ": " .. text
	end
end

function Cast:problems()
	local found = {}
	for i, player in ipairs(self.players) do
		append(found, "handler " .. i, player.judge.problems)
	end
	return found
end

local function compare_player(found, i, player, map)
	local what = "handler " .. i
	append(found, what, judges.differences(player.judge.held, "what it was told", player.plan.filter and truth.wanted(map) or map,
		"the cache"))
	if not player.registration:has_synced() then
		append(found, what, { "has not synced" })
	end
end

function Cast:differences()
	local found, maps = {}, {}
	for i, informer in ipairs(self.informers) do
		if informer.handle:has_synced() then
			local texts
			texts, maps[i] = truth.differences(informer)
			append(found, "informer " .. i, texts)
		else
			append(found, "informer " .. i, { "has not synced" })
		end
	end
	for i, player in ipairs(self.players) do
		if not player.removed and maps[player.plan.informer] then
			compare_player(found, i, player, maps[player.plan.informer])
		end
	end
	return found
end

function Cast:versions()
	local found = {}
	for i, informer in ipairs(self.informers) do
		local version = informer.handle:resource_version()
		found[i] = {}
		for _, one in pairs(type(version) == "table" and version or { version }) do
			table.insert(found[i], one)
		end
	end
	return found
end

return players
