-- A store with own writes over it, fed by a watch that lags: what it shows, and what handlers are told.
local c = require "support.cache_units"
local cache = require "support.cache"
local ffi = c.ffi

-- The parts under test, joined as a feed joins them. `position`: the version that the watch has told up to.
local Cache = {}
Cache.__index = Cache

local function new_cache()
	local store, overlay, apply = c.store_new(), ffi.new "struct overlay", ffi.new "struct apply"
	c.overlay_init(overlay, store)
	apply.store, apply.overlay = store, overlay
	local self = setmetatable({ store = store, overlay = overlay, apply = apply, position = 0, lines = {}, mirror = cache.mirror() }, Cache)
	self.notify = ffi.cast("void (*)(void *, const struct notification *)", function(_, notification)
		self:hear(notification)
	end)
	apply.notify = self.notify
	return self
end

function Cache:free()
	c.overlay_fini(self.overlay)
	c.store_free(self.store)
	self.notify:free()
end

-- What is wrong with an event is said later: no error may pass through C.
function Cache:hear(notification)
	local event = {
		event = c.types[notification.type], key = c.key(notification.object), version = c.version(notification.object),
		uid = c.uid(notification.object), old = notification.old ~= nil and c.version(notification.old) or nil,
	}
	self.lines[#self.lines + 1] = event.event .. " " .. (event.old and event.old .. "->" or "") .. event.version
	local ok, why = pcall(self.mirror.apply, self.mirror, event)
	self.wrong = self.wrong or not ok and why or nil
end

function Cache:deliver(delta, position)
	c.apply_delta(self.apply, delta, false, math.huge)
	c.delta_free(delta)
	self.position = position
end

function Cache:put(object)
	self:deliver(c.put_delta(object), tonumber(c.version(object)))
end

function Cache:delete(object)
	self:deliver(c.delete_delta(object), tonumber(c.version(object)))
end

function Cache:bookmark(version)
	self:deliver(c.bookmark_delta(version), version)
end

function Cache:relist(objects, version, more)
	more = more or {}
	more.version = version
	self:deliver(c.replace_delta(objects, nil, more), version)
end

local function is_fresh(self, object)
	return tonumber(c.version(object)) > self.position
end

-- The answers of own writes.
function Cache:wrote(object, hidden)
	if is_fresh(self, object) then
		c.overlay_put(self.overlay, object, not hidden)
	end
end

-- last: nil where the answer was a Status.
function Cache:deleted(key, uid, last)
	c.overlay_remove(self.overlay, key, #key, uid, last and is_fresh(self, last) and last or nil)
end

function Cache:shows(key)
	local object = c.store_get_key(self.store, key, #key)
	return object ~= nil and c.version(object) or nil
end

function Cache:holds(key)
	return c.overlay_holds(self.overlay, key, #key)
end

function Cache:found(index, value)
	return c.visit(function(callback)
		c.store_each_index(self.store, index, value, #value, callback, nil)
	end)
end

function Cache:heard()
	local lines = self.lines
	self.lines = {}
	return lines
end

function Cache:entries()
	c.overlay_check(self.overlay)
	c.store_check(self.store)
	return tonumber(self.overlay.entries.count)
end

local function one(version, more)
	more = more or {}
	return c.object { name = "a", uid = more.uid or "A", version = version, data = more.data }
end

local function other(version)
	return c.object { name = "b", uid = "B", version = version }
end

describe("own writes", function()
	local held, live

	before_each(function()
		live = c.live()
		held = new_cache()
	end)

	after_each(function()
		assert.is_nil(held.wrong)
		held:free()
		assert.equal(live, c.live())
	end)

	it("show at once, and an older event that is late does not undo them", function()
		held:put(one(5))
		held:wrote(one(10))
		assert.equal("10", held:shows "a")
		held:put(one(8))
		assert.equal("10", held:shows "a")
		assert.same({ "add 5", "update 5->8" }, held:heard())
		held:put(one(10))
		assert.equal("10", held:shows "a")
		assert.same({ "update 8->10" }, held:heard())
		assert.equal(0, held:entries())
	end)

	it("show before the watch knows the key, and give way to what is newer", function()
		held:bookmark(5)
		held:wrote(one(10))
		assert.equal("10", held:shows "a")
		held:put(one(12))
		assert.equal("12", held:shows "a")
		assert.same({ "add 12" }, held:heard())
		assert.equal(0, held:entries())
	end)

	it("that the watch has passed already change nothing", function()
		held:put(one(5))
		held:delete(one(11))
		held:wrote(one(10))
		assert.is_nil(held:shows "a")
		held:put(one(12))
		held:wrote(one(12))
		assert.equal(0, held:entries())
	end)

	it("show the newest answer, in whatever order answers come", function()
		held:put(one(5))
		held:wrote(one(10))
		held:wrote(one(8))
		assert.equal("10", held:shows "a")
		held:wrote(one(12))
		held:put(one(10))
		assert.equal("12", held:shows "a")
		assert.equal(1, held:entries())
	end)

	it("are found by index at once, where they are now and not where they were", function()
		c.store_add_index(held.store, "x", c.store_path_index(c.json_path_new("data.x", nil)))
		held:put(one(5, { data = { x = "old" } }))
		held:wrote(one(10, { data = { x = "new" } }))
		assert.same({ "a 10" }, held:found("x", "new"))
		assert.same({}, held:found("x", "old"))
		held:put(one(8, { data = { x = "old" } }))
		assert.same({}, held:found("x", "old"))
	end)

	it("hide what left the selector, and nothing that was never there", function()
		held:put(one(5))
		held:wrote(one(10), true)
		held:wrote(other(11), true)
		assert.is_nil(held:shows "a")
		assert.equal(1, held:entries())
		assert.same({ "add 5" }, held:heard())
		held:delete(one(10))
		assert.same({ "delete 10" }, held:heard())
		assert.equal(0, held:entries())
	end)

	it("end with a bookmark or another key's event where their own never comes", function()
		held:put(one(5))
		held:wrote(one(10))
		held:bookmark(9)
		assert.equal("10", held:shows "a")
		held:bookmark(10)
		assert.equal("5", held:shows "a")
		held:wrote(one(12))
		held:put(other(13))
		assert.equal("5", held:shows "a")
		assert.equal(0, held:entries())
	end)

	it("outlive a list that is older, and end with one that is not", function()
		held:put(one(5))
		held:wrote(one(10))
		held:wrote(other(11))
		held:relist({ one(8) }, 9)
		assert.equal("10", held:shows "a")
		assert.equal("11", held:shows "b")
		assert.same({ "add 5", "update 5->8" }, held:heard())
		held:relist({ one(10) }, 10)
		assert.equal("10", held:shows "a")
		assert.equal("11", held:shows "b")
		held:relist({}, 12)
		assert.is_nil(held:shows "a")
		assert.is_nil(held:shows "b")
		assert.same({ "update 8->10", "delete 10" }, held:heard())
		assert.equal(0, held:entries())
	end)

	it("end with a list of the truth that was asked for after them, whatever its version", function()
		held:put(one(5))
		held:wrote(one(10))
		held:relist({ one(5) }, 6, { truth = true, asked_at = c.clock_now() - 1 })
		assert.equal("10", held:shows "a")
		held:relist({ one(5) }, 6, { truth = true, asked_at = c.clock_now() + 1 })
		assert.equal("5", held:shows "a")
		assert.equal(0, held:entries())
	end)

	it("end with a kind that is gone", function()
		held:put(one(5))
		held:wrote(one(10))
		held:relist({}, nil, { truth = true })
		assert.is_nil(held:shows "a")
		assert.same({ "add 5", "delete 5" }, held:heard())
		assert.equal(0, held:entries())
	end)

	it("of versions that are no numbers wait for their events", function()
		held:wrote(c.object { name = "a", uid = "A", version = "10" }, false)
		c.overlay_put(held.overlay, c.object { name = "b", uid = "B", version = "x7" }, true)
		assert.is_nil(held:shows "b")
		assert.equal(1, held:entries())
	end)

	it("are kept for a while only where a watch is stuck: the first ten thousand", function()
		for i = 1, 10001 do
			held:wrote(c.object { name = "n" .. i, uid = "N", version = i })
		end
		assert.equal("1", held:shows "n1")
		assert.is_nil(held:shows "n10001")
		assert.equal(10000, held:entries())
	end)

	describe("that delete", function()
		it("hide that uid until its delete comes, whatever comes late", function()
			held:put(one(5))
			held:deleted("a", "A")
			assert.is_nil(held:shows "a")
			held:put(one(8))
			held:put(other(9))
			held:bookmark(20)
			assert.is_nil(held:shows "a")
			held:relist({ one(8), other(9) }, 21)
			assert.is_nil(held:shows "a")
			assert.same({ "add 5", "update 5->8", "add 9" }, held:heard())
			held:delete(one(22))
			assert.same({ "delete 22" }, held:heard())
			assert.equal(0, held:entries())
		end)

		it("hide what the watch has yet to tell of an own create", function()
			held:bookmark(5)
			held:wrote(one(10))
			held:deleted("a", "A")
			assert.is_nil(held:shows "a")
			held:put(one(10))
			assert.is_nil(held:shows "a")
			held:put(other(11))
			assert.is_nil(held:shows "a")
			held:delete(one(12))
			assert.same({ "add 10", "add 11", "delete 12" }, held:heard())
			assert.equal(0, held:entries())
		end)

		it("hide what the watch has yet to tell at all, where the answer is the object", function()
			held:bookmark(5)
			held:deleted("a", "A", one(12))
			held:put(one(10))
			assert.is_nil(held:shows "a")
			held:delete(one(12))
			assert.equal(0, held:entries())
		end)

		it("end with a list that lacks the uid", function()
			held:put(one(5))
			held:deleted("a", "A")
			held:relist({}, 9)
			assert.same({ "add 5", "delete 5" }, held:heard())
			assert.equal(0, held:entries())
		end)

		it("do not hide another uid that comes later, or is there already", function()
			held:put(one(5))
			held:deleted("a", "A")
			held:put(one(9, { uid = "A2" }))
			assert.equal("9", held:shows "a")
			assert.equal(0, held:entries())
			held:deleted("a", "A")
			assert.equal("9", held:shows "a")
		end)

		it("give way to an own create of the same name, whose events then come in their order", function()
			held:put(one(5))
			held:deleted("a", "A")
			held:wrote(one(12, { uid = "A2" }))
			assert.equal("12", held:shows "a")
			held:put(one(8))
			held:delete(one(11))
			assert.equal("12", held:shows "a")
			held:put(one(12, { uid = "A2" }))
			assert.same({ "add 5", "update 5->8", "delete 11", "add 12" }, held:heard())
			assert.equal(0, held:entries())
		end)

		it("are not undone by the answer of an earlier write that is late", function()
			held:put(one(5))
			held:deleted("a", "A")
			held:wrote(one(8))
			assert.is_nil(held:shows "a")
			assert.equal(1, held:entries())
		end)
	end)
end)

-- A server of six keys: the state of each, and the log of all that happened. selected: what the watch selects.
local Server = {}
Server.__index = Server

local KEYS = { "a", "b", "c", "d", "e", "f" }

local function new_server()
	return setmetatable({ version = 100, objects = {}, log = {} }, Server)
end

function Server:record(key, before, after)
	self.log[#self.log + 1] = { version = self.version, key = key, before = before, after = after }
end

function Server:put(key, selected)
	local before = self.objects[key]
	self.version = self.version + math.random(3)
	local uid = before and before.uid or "uid-" .. self.version
	local after = { version = self.version, uid = uid, selected = selected,
		object = c.object { name = key, uid = uid, version = self.version, data = { v = tostring(self.version % 3) } } }
	self.objects[key] = after
	self:record(key, before, after)
	return after
end

-- What was deleted, as it was last, at the version of its end.
function Server:delete(key)
	local before = self.objects[key]
	self.version = self.version + math.random(3)
	self.objects[key] = nil
	local last = { version = self.version, uid = before.uid, selected = before.selected,
		object = c.object { name = key, uid = before.uid, version = self.version } }
	self:record(key, before, nil)
	self.log[#self.log].last = last
	return last
end

-- The state of all keys when that much of the log had happened.
function Server:at(count)
	local state = {}
	for i = 1, count do
		state[self.log[i].key] = self.log[i].after
	end
	return state
end

local function selected_objects(state)
	local objects = {}
	for _, key in ipairs(KEYS) do
		if state[key] and state[key].selected then
			objects[#objects + 1] = state[key].object
		end
	end
	return objects
end

-- One run. The model: told[key] and known[key], each { version =, shows = version or nil }, are what the watch and the
-- answers say last of a key; the newer one is what has to be shown.
local Run = {}
Run.__index = Run

local function new_run(statuses)
	return setmetatable({ statuses = statuses, server = new_server(), cache = new_cache(), at = 0, told = {}, known = {}, answers = {} }, Run)
end

local function note(map, key, version, shows)
	if not map[key] or map[key].version <= version then
		map[key] = { version = version, shows = shows }
	end
end

function Run:random_write()
	local server, key = self.server, KEYS[math.random(#KEYS)]
	if server.objects[key] and math.random() < 0.3 then
		return key, server:delete(key), true
	end
	-- A Status says nothing of labels, so where deletes are answered so they do not change.
	return key, server:put(key, self.statuses or math.random() < 0.8), false
end

function Run:write()
	local key, object, gone = self:random_write()
	if math.random() < 0.5 then
		self.answers[#self.answers + 1] = { key = key, object = object, gone = gone }
	end
end

function Run:answer_delete(key, last)
	local concerns = self.cache:holds(key) or last.selected
	if not self.statuses then
		self.cache:deleted(key, last.uid, concerns and last.object or nil)
		return concerns
	end
	local shown = c.store_get_key(self.cache.store, key, #key)
	local is_known = shown ~= nil and c.uid(shown) == last.uid
	self.cache:deleted(key, last.uid)
	return is_known
end

function Run:answer()
	local answer = table.remove(self.answers, math.random(#self.answers))
	local key, object = answer.key, answer.object
	local concerns = self.cache:holds(key) or object.selected
	if answer.gone then
		concerns = self:answer_delete(key, object)
	elseif concerns then
		self.cache:wrote(object.object, not object.selected)
	end
	if concerns then
		note(self.known, key, object.version, not answer.gone and object.selected and object.version or nil)
	end
end

function Run:step_watch()
	local event = self.server.log[self.at + 1]
	if not event then
		return
	end
	self.at = self.at + 1
	local was, is = event.before and event.before.selected, event.after and event.after.selected
	if is then
		self.cache:put(event.after.object)
	elseif was then
		self.cache:delete(event.last and event.last.object
			or c.object { name = event.key, uid = event.before.uid, version = event.version })
	end
	self.told[event.key] = { version = event.version, shows = is and event.version or nil }
end

function Run:bookmark()
	local event = self.server.log[self.at]
	if event then
		self.cache:bookmark(event.version)
	end
end

function Run:relist()
	local server = self.server
	local count = math.random(self.at, #server.log)
	local version = count > 0 and server.log[count].version or 1
	local truth = math.random() < 0.3
	local state = server:at(count)
	self.at = count
	self.cache:relist(selected_objects(state), version, { truth = truth, asked_at = c.clock_now() - 1000 })
	for _, key in ipairs(KEYS) do
		local object = state[key]
		self.told[key] = { version = version, shows = object and object.selected and object.version or nil }
	end
end

local function shown_of(map, key)
	local shows = map[key] and map[key].shows
	return shows and tostring(shows)
end

function Run:expected(key)
	local told, known = self.told[key], self.known[key]
	local newer = known and (not told or known.version > told.version)
	return shown_of(newer and self.known or self.told, key)
end

function Run:check(where)
	assert(not self.cache.wrong, where .. ": " .. tostring(self.cache.wrong))
	local filed = { ["0"] = {}, ["1"] = {}, ["2"] = {} }
	for _, key in ipairs(KEYS) do
		local shown = self:expected(key)
		assert.equal(shown, self.cache:shows(key), where .. " key " .. key)
		assert.equal(shown_of(self.told, key), self.cache.mirror.map[key], where .. " told of " .. key)
		if shown then
			table.insert(filed[tostring(shown % 3)], key .. " " .. shown)
		end
	end
	for value, expected in pairs(filed) do
		local found = self.cache:found("v", value)
		table.sort(found)
		assert.same(expected, found, where)
	end
	self.cache:entries()
end

function Run:step()
	local chance = math.random()
	if chance < 0.35 then
		self:write()
	elseif chance < 0.6 then
		if #self.answers > 0 then
			self:answer()
		end
	elseif chance < 0.94 then
		self:step_watch()
	elseif chance < 0.97 then
		self:bookmark()
	else
		self:relist()
	end
end

describe("own writes and a watch that lags #slow", function()
	for what, statuses in pairs { objects = false, ["a Status"] = true } do
		it("show the newer of both at every step, with deletes answered by " .. what, function()
			local seed, live = c.seed(), c.live()
			for round = 1, 40 do
				local run = new_run(statuses)
				c.store_add_index(run.cache.store, "v", c.store_path_index(c.json_path_new("data.v", nil)))
				for step = 1, 150 do
					run:step()
					run:check(("%s round %d step %d"):format(seed, round, step))
				end
				while run.at < #run.server.log do
					run:step_watch()
				end
				run:bookmark()
				assert.equal(0, run.cache:entries(), seed)
				run.cache:free()
				assert.equal(live, c.live(), seed)
			end
		end)
	end
end)
