--- schedule: a random story of an API server, its faults, and the informers and handlers that follow it.
--
--   schedule.new(seed)     the same for the same seed, everywhere
--   schedule.text(story)   a line for each of its parts
--
--   story: { seed =, informers =, handlers =, steps =, seconds =, server = }
--       server: an order for a fault that is there all the time; nil for none
--   informer: { at =, options = }      for factory:informer, which is then called `at` seconds after the start; transform
--                                      is a name of truth.transforms
--   handler: { informer = index, at =, remove_at =, every_event =, resync =, filter =, nap =, nap_every =, marks =,
--            writes =, fails = }
--       filter: whether it wants those of truth.is_wanted alone; nap: seconds that it sleeps in every nap_every-th call;
--       marks: it writes to the object in every so-many-th call; writes: it then also relabels, deletes and creates, a few
--       times; fails: it raises in every so-many-th call
--   step: { at =, verb =, … } in the order of their times
--       create, update (object =), delete (object =), recreate (object =), fault (order =), compact, restart
local schedule = {}

--- Sorts an array of what has a time, at; what is of one time stays in its order. Returns it.
function schedule.by_time(array)
	local places = {}
	for i, one in ipairs(array) do
		places[one] = i
	end
	table.sort(array, function(a, b)
		return a.at < b.at or (a.at == b.at and places[a] < places[b])
	end)
	return array
end

-- --- chance ---

local Chance = {}
Chance.__index = Chance

-- The minimal standard generator: exact in doubles, so a seed means the same on every machine.
local function chance_of(seed)
	local chance = setmetatable({ state = seed % 2147483646 + 1 }, Chance)
	for _ = 1, 3 do -- small seeds begin alike
		chance:next()
	end
	return chance
end

function Chance:next()
	self.state = self.state * 16807 % 2147483647
	return self.state / 2147483647
end

-- A whole number from least to most.
function Chance:between(least, most)
	return least + math.floor(self:next() * (most - least + 1))
end

function Chance:pick(list)
	return list[self:between(1, #list)]
end

function Chance:is(probability)
	return self:next() < probability
end

-- --- the world ---

local NAMESPACES = { "red", "green", "blue" }
schedule.namespaces = NAMESPACES

local KINDS = {
	{ apiVersion = "v1", kind = "ConfigMap", resource = "configmaps", namespaced = true },
	{ apiVersion = "coordination.k8s.io/v1", kind = "Lease", resource = "leases", namespaced = true },
	{ apiVersion = "v1", kind = "Node", resource = "nodes" },
}

local NAMES = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l" }
local LABELS = { app = { "web", "db" }, tier = { "front", "back" } }
local SELECTORS = { "app=web", "app in (web,db)", "!app", "tier=front,app!=db", "tier" }
local PADDING = { 0, 0, 0, 10, 10, 100, 100, 200, 3000, 20000 }

local function labels_of(chance)
	local labels = {}
	for _, name in ipairs { "app", "tier" } do
		labels[name] = chance:is(0.7) and chance:pick(LABELS[name]) or nil
	end
	return labels
end

-- The turn is in an annotation and, where the kind has it, in the data, so that each write changes what is kept.
local function object_of(chance, kind, namespace, name, turn)
	local object = {
		apiVersion = kind.apiVersion, kind = kind.kind,
		metadata = { name = name, namespace = namespace, labels = labels_of(chance), annotations = { turn = tostring(turn) } },
	}
	if kind.kind == "ConfigMap" then
		object.data = { turn = tostring(turn), padding = ("x"):rep(chance:pick(PADDING)) }
	elseif kind.kind == "Lease" then
		object.spec = { holderIdentity = tostring(turn) }
	end
	return object
end

-- --- informers and handlers ---

local PROJECTIONS = {
	{}, {}, {}, { metadata_only = true }, { drop = { "metadata.managedFields", "metadata.annotations" } },
	{ keep = { "metadata", "data.turn" } }, { transform = "short" },
}

local function some_namespaces(chance)
	local first = chance:between(1, 3)
	if chance:is(0.4) then
		return NAMESPACES[first]
	end
	return { NAMESPACES[first], NAMESPACES[first % 3 + 1] }
end

local function informer_of(chance, kind)
	local options = { apiVersion = kind.apiVersion, kind = kind.kind, index = { app = "metadata.labels.app" } }
	for name, value in pairs(chance:pick(PROJECTIONS)) do
		options[name] = value
	end
	if kind.namespaced and chance:is(0.4) then
		options.namespace = some_namespaces(chance)
	end
	options.label_selector = chance:is(0.4) and chance:pick(SELECTORS) or nil
	options.page_size = chance:is(0.5) and chance:between(1, 5) or nil
	return { at = chance:is(0.2) and chance:between(1, 60) or 0, options = options, resource = kind.resource }
end

local function handler_of(chance, informer, seconds)
	local handler = { informer = informer, at = 0, every_event = chance:is(0.5) }
	if chance:is(0.2) then
		handler.nap, handler.nap_every = chance:pick { 0.1, 1, 7 }, chance:between(1, 5)
	end
	handler.resync = chance:is(0.2) and chance:pick { 10, 45 } or nil
	handler.filter = chance:is(0.2) or nil
	handler.marks = chance:is(0.2) and chance:between(1, 3) or nil
	handler.writes = chance:is(0.4) and chance:between(1, 3) or nil
	handler.fails = chance:is(0.05) and chance:between(1, 4) or nil
	if chance:is(0.25) then
		handler.at = chance:between(1, seconds)
	end
	if chance:is(0.1) then
		handler.remove_at = handler.at + chance:between(0, 60)
	end
	return handler
end

-- The first two handlers of an informer are one that merges and one that doesn't, and stay.
local function add_handlers(chance, story, informer)
	for _, every_event in ipairs { true, false } do
		table.insert(story.handlers, { informer = informer, at = 0, every_event = every_event })
	end
	for _ = 1, chance:between(0, 2) do
		table.insert(story.handlers, handler_of(chance, informer, story.seconds))
	end
end

local function add_informers(chance, story)
	story.kinds = {}
	for i = 1, chance:between(1, 3) do
		local kind = chance:pick(KINDS)
		story.kinds[i] = kind
		story.informers[i] = informer_of(chance, kind)
		add_handlers(chance, story, i)
	end
end

-- --- writes ---

local Writer = {}
Writer.__index = Writer

local function writer_of(chance, story)
	return setmetatable({ chance = chance, story = story, living = {}, turn = 0 }, Writer)
end

function Writer:write(at, verb, object)
	table.insert(self.story.steps, { at = at, verb = verb, object = object })
end

local function key_of(kind, namespace, name)
	return kind.resource .. "/" .. (namespace or "") .. "/" .. name
end

-- A random place of that kind: its key, namespace and name.
function Writer:place(kind)
	local namespace, name = kind.namespaced and self.chance:pick(NAMESPACES) or nil, self.chance:pick(NAMES)
	return key_of(kind, namespace, name), namespace, name
end

-- Creates the object of a place, or changes, deletes or recreates the one that is there.
function Writer:touch(at)
	local chance, kind = self.chance, self.chance:pick(self.story.kinds)
	local key, namespace, name = self:place(kind)
	self.turn = self.turn + 1
	local object = object_of(chance, kind, namespace, name, self.turn)
	if not self.living[key] then
		self.living[key] = true
		self:write(at, "create", object)
	elseif chance:is(0.3) then
		self.living[key] = nil
		self:write(at, "delete", object)
	else
		self:write(at, chance:is(0.15) and "recreate" or "update", object)
	end
end

-- Deletes an object of that kind, if one is found.
function Writer:remove(at, kind)
	for _ = 1, 2 * #NAMES do
		local key, namespace, name = self:place(kind)
		if self.living[key] then
			self.living[key] = nil
			self:write(at, "delete", object_of(self.chance, kind, namespace, name, self.turn))
			return
		end
	end
end

-- --- faults ---

-- What a LIST may be answered with, and what a WATCH; each a function of chance.
local function status(code, retry)
	return function(chance)
		return { action = "status", code = code, retry_after = retry and chance:is(0.6) and chance:between(1, 5) or nil }
	end
end

local function plain(action)
	return function()
		return { action = action }
	end
end

local function cut(chance)
	return { action = "cut", bytes = chance:pick { 0, 1, 40, 300, 2000 } }
end

local function slow(chance)
	return { action = "slow", bytes_per_second = chance:pick { 500, 5000 } }
end

local function expire_page(chance)
	return { action = "expire", page = chance:between(1, 3), reason = chance:is(0.3) and "Gone" or nil }
end

local function fail_page(chance)
	return { action = "status", code = chance:pick { 500, 503 }, page = 2 }
end

local FAULTS = {
	list = {
		status(429, true), status(500), status(503, true), status(504, true), status(403), plain "unauthorized", plain "conflict",
		cut, plain "reset", slow, expire_page, expire_page, fail_page, plain "garbage", plain "wrong_kind", plain "duplicate",
		plain "restart",
	},
	watch = {
		status(429, true), status(500), status(503, true), status(504, true), status(403), plain "unauthorized",
		plain "conflict", plain "expire", plain "expire", cut, plain "reset", plain "silence", slow, plain "garbage",
		plain "wrong_kind", plain "duplicate", plain "no_end_bookmark", plain "restart",
	},
	patch = {
		plain "conflict", plain "conflict", status(429, true), status(500), status(503, true), cut, plain "reset", plain "silence",
		plain "garbage", plain "restart",
	},
}

-- What a verb's fault is picked from, the oftener the likelier.
local VERBS = { "list", "list", "list", "list", "watch", "watch", "watch", "watch", "watch", "patch" }

local function add_fault(chance, story, at, verb)
	local order = chance:pick(FAULTS[verb])(chance)
	order.verb, order.resource = verb, chance:pick(story.informers).resource
	if verb == "watch" then
		order.after = chance:pick { 0, 0, 1, 2, 3 }
	end
	order.times = chance:is(0.2) and 2 or 1
	table.insert(story.steps, { at = at, verb = "fault", order = order })
end

-- A fault is of requests that come after it. Most are there from the start and so meet the first list and the streams
-- one after another; later ones are helped by ends of streams and lost histories.
local function add_faults(chance, story)
	for _ = 1, chance:between(3, 7) do
		local at = chance:is(0.6) and 0 or chance:between(0, story.seconds)
		add_fault(chance, story, at, chance:pick(VERBS))
	end
	for _ = 1, chance:between(1, 3) do
		local verb = chance:pick { "compact", "restart", "restart" }
		table.insert(story.steps, { at = chance:between(1, story.seconds), verb = verb })
	end
end

-- Servers differ in what they say to a watch-list: nil where they have it.
local SERVERS = {
	{}, {}, { code = 422 }, { code = 422 }, { code = 400 }, { ignores = true },
}

local function server_of(chance)
	local server = chance:pick(SERVERS)
	if server.code or server.ignores then
		return { verb = "watch", action = "no_watch_list", code = server.code, times = 1e6 }
	end
end

local BROKEN_LISTS = { fail_page, expire_page, cut, plain "garbage", plain "reset" }

-- All streams of a kind must list again, one list breaks off, and meanwhile objects go: the times of these deletes, by kind.
local function add_broken_relist(chance, story, todo)
	local at, i = chance:between(1, story.seconds), chance:between(1, #story.informers)
	local resource = story.informers[i].resource
	local order = chance:pick(BROKEN_LISTS)(chance)
	order.verb, order.resource = "list", resource
	table.insert(story.steps, { at = at, verb = "fault", order = { verb = "watch", resource = resource, action = "expire", times = 3 } })
	table.insert(story.steps, { at = at, verb = "fault", order = order })
	table.insert(story.steps, { at = at, verb = "restart" })
	for half_second = 2, 8 do
		table.insert(todo, { at = at + half_second / 2, removes = story.kinds[i] })
	end
end

-- --- the whole ---

local function add_writes(chance, story, todo)
	local writer = writer_of(chance, story)
	for _ = 1, chance:between(0, 25) do
		writer:touch(0)
	end
	for _ = 1, chance:between(4, 14) do
		local at = chance:between(0, story.seconds)
		for _ = 1, chance:is(0.15) and chance:between(5, 25) or 1 do
			table.insert(todo, { at = at })
		end
	end
	for _, write in ipairs(schedule.by_time(todo)) do
		if write.removes then
			writer:remove(write.at, write.removes)
		else
			writer:touch(write.at)
		end
	end
end

local function put_faults_first(steps)
	local faults, others = {}, {}
	for _, step in ipairs(steps) do
		table.insert(step.verb == "fault" and faults or others, step)
	end
	for _, step in ipairs(others) do
		table.insert(faults, step)
	end
	return faults
end

function schedule.new(seed)
	local chance = chance_of(seed)
	local story = { seed = seed, informers = {}, handlers = {}, steps = {}, seconds = chance:pick { 20, 100, 400 } }
	local todo = {}
	add_informers(chance, story)
	story.server = server_of(chance)
	add_faults(chance, story)
	if chance:is(0.5) then
		add_broken_relist(chance, story, todo)
	end
	add_writes(chance, story, todo)
	story.steps = schedule.by_time(put_faults_first(story.steps))
	return story
end

-- --- as text ---

local function shown(value)
	if type(value) ~= "table" then
		return type(value) == "string" and #value > 60 and ("%q …%d bytes"):format(value:sub(1, 10), #value) or tostring(value)
	end
	local names, parts = {}, {}
	for name in pairs(value) do
		names[#names + 1] = name
	end
	table.sort(names, function(a, b)
		return tostring(a) < tostring(b)
	end)
	for i, name in ipairs(names) do
		parts[i] = (type(name) == "number" and "" or name .. "=") .. shown(value[name])
	end
	return "{" .. table.concat(parts, " ") .. "}"
end

local function describe_step(step)
	local object = step.object
	if not object then
		return ("%6g s  %s %s"):format(step.at, step.verb, step.order and shown(step.order) or "")
	end
	local metadata = object.metadata
	return ("%6g s  %s %s %s/%s turn %s labels %s"):format(step.at, step.verb, object.kind, metadata.namespace or "", metadata.name,
		metadata.annotations.turn, shown(metadata.labels))
end

function schedule.text(story)
	local lines = { "seed " .. story.seed, "server: " .. (story.server and shown(story.server) or "with watch-lists") }
	for i, informer in ipairs(story.informers) do
		lines[#lines + 1] = ("informer %d: %s"):format(i, shown(informer))
	end
	for i, handler in ipairs(story.handlers) do
		lines[#lines + 1] = ("handler %d: %s"):format(i, shown(handler))
	end
	for _, step in ipairs(story.steps) do
		lines[#lines + 1] = describe_step(step)
	end
	return table.concat(lines, "\n")
end

return schedule
