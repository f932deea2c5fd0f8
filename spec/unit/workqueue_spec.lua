-- The work queue: what is promised of single keys, and thousands of random steps against the same in plain Lua.
local c = require "support.work_units"
local ffi = c.ffi

local HIGH, LOW = c.HIGH, c.LOW

c.cdef "size_t malloc_usable_size(void *memory);"

describe("workqueue", function()
	before_each(c.open)
	after_each(c.close)

	it("gives each key once, the oldest first", function()
		local queue = c.queue()
		assert.is_nil(queue:get())
		for _, key in ipairs { "shop/b", "node", "shop/b", "shop/a", "node" } do
			queue:add(key)
		end
		assert.equal(3, queue:depth())
		assert.same({ "shop/b", "node", "shop/a" }, queue:drain())
		assert.equal(0, queue:depth())
	end)

	it("tells once that something can be taken, and again after nothing was", function()
		local queue = c.queue()
		queue:add "a"
		assert.equal(0, queue.ready) -- posted, so not in the call
		c.turn()
		queue:add "b"
		queue:done(queue:get())
		c.turn()
		assert.equal(1, queue.ready)
		queue:drain()
		queue:add "c"
		queue:drain()
		c.turn()
		assert.equal(1, queue.ready)
		queue:add_after("d", LOW, 1)
		c.turn()
		assert.equal(1, queue.ready)
		c.advance(1)
		assert.equal(2, queue.ready)
	end)

	it("runs a key that is added while it is worked on once more, when that is done", function()
		local queue = c.queue()
		queue:add "a"
		local item = queue:get()
		queue:add "a"
		queue:add "a"
		assert.is_nil(queue:get())
		assert.equal(0, queue:depth())
		c.turn()
		assert.equal(0, queue.ready)
		queue:done(item)
		assert.equal(1, queue:depth())
		c.turn()
		assert.equal(1, queue.ready)
		assert.same({ "a" }, queue:drain())
		assert.same({}, queue:drain())
	end)

	it("serves one key of low priority for eight of high", function()
		local queue = c.queue()
		for i = 1, 30 do
			queue:add("low" .. i, LOW)
		end
		for i = 1, 20 do
			queue:add("high" .. i, HIGH)
		end
		local keys = queue:drain()
		assert.equal("low1", keys[9])
		assert.equal("low2", keys[18])
		assert.equal("high20", keys[22])
		assert.equal("low3", keys[23])
		assert.equal("low30", keys[50])
	end)

	it("gives a waiting key of low priority the high one that it is added with, never the other way", function()
		local queue = c.queue()
		queue:add("a", LOW)
		queue:add("b", LOW)
		queue:add("b", HIGH)
		queue:add("b", LOW)
		local item = queue:get()
		assert.equal("b", c.key(item))
		assert.equal(HIGH, c.work_item_priority(item))
		queue:add("b", LOW)
		queue:add("b", HIGH)
		assert.equal(HIGH, c.work_item_priority(item))
		queue:done(item)
		item = queue:get()
		assert.equal("b", c.key(item))
		queue:done(item)
		item = queue:get()
		assert.equal(LOW, c.work_item_priority(item))
		queue:done(item)
	end)

	it("keeps the earliest of a key's times, which an add ends", function()
		local queue = c.queue()
		queue:add_after("a", LOW, 10)
		queue:add_after("a", LOW, 5)
		queue:add_after("a", LOW, 20)
		assert.equal(1, queue:delayed())
		c.advance(4.5)
		assert.is_nil(queue:get())
		c.advance(0.5)
		assert.same({ "a" }, queue:drain())
		c.advance(100)
		assert.is_nil(queue:get())
		queue:add_after("a", LOW, 10)
		queue:add("a", HIGH)
		queue:add_after("a", LOW, 10)
		assert.equal(0, queue:delayed())
		assert.same({ "a" }, queue:drain())
		c.advance(100)
		assert.is_nil(queue:get())
		for _, seconds in ipairs { 0, -1, 0 / 0 } do
			queue:add_after("a", LOW, seconds)
			assert.same({ "a" }, queue:drain())
		end
	end)

	it("lets a key's time run while it is worked on", function()
		local queue = c.queue()
		queue:add "a"
		local item = queue:get()
		queue:add_after("a", HIGH, 5)
		c.advance(6)
		assert.is_nil(queue:get())
		queue:done(item)
		item = queue:get()
		assert.equal("a", c.key(item))
		queue:add_after("a", HIGH, 5)
		queue:done(item)
		c.advance(4)
		assert.is_nil(queue:get())
		c.advance(1)
		assert.same({ "a" }, queue:drain())
	end)

	it("waits twice as long after each failure, up to the limit, until they are forgotten", function()
		local queue = c.queue { max = 0.08 }
		local function fail()
			local item = queue:get()
			local seconds = queue:retry(item)
			queue:done(item)
			return seconds
		end
		queue:add("a", LOW)
		for failures, milliseconds in ipairs { 5, 10, 20, 40, 80, 80, 80 } do
			assert.near(milliseconds / 1000, fail(), 1e-12)
			c.advance((milliseconds - 0.1) / 1000)
			assert.equal(0, queue:depth())
			c.advance(0.0002)
			local item = queue:get()
			assert.equal(failures, c.work_item_failures(item))
			assert.equal(LOW, c.work_item_priority(item))
			queue:add("a", LOW)
			queue:done(item)
		end
		local item = queue:get()
		queue:forget(item)
		queue:add "a"
		queue:done(item)
		assert.near(0.005, fail(), 1e-12)
	end)

	it("never waits longer than the limit, however often a key has failed", function()
		local queue = c.queue()
		queue:add "a"
		local item, seconds = queue:get(), 0
		for _ = 1, 3000 do
			seconds = queue:retry(item)
		end
		assert.equal(1000, seconds)
		queue:done(item)
	end)

	it("spreads the retries of all keys where a bucket is asked for", function()
		local queue = c.queue { qps = 10, burst = 3 }
		local items = {}
		for i = 1, 6 do
			queue:add("key" .. i)
			items[i] = queue:get()
		end
		for i, seconds in ipairs { 0.005, 0.005, 0.005, 0.1, 0.2, 0.3 } do
			assert.near(seconds, queue:retry(items[i]), 1e-9)
			queue:done(items[i])
		end
		c.advance(0.31)
		assert.equal(6, queue:depth())
		c.advance(60)
		for i, seconds in ipairs { 0.01, 0.01, 0.01, 0.1, 0.2, 0.3 } do
			local item = queue:get()
			assert.near(seconds, queue:retry(item), 1e-9, "key " .. i)
			queue:done(item)
		end
	end)

	it("takes in and gives out nothing after its shutdown, and lets workers end", function()
		local queue = c.queue()
		for _, key in ipairs { "a", "b", "c" } do
			queue:add(key)
		end
		local a, b = queue:get(), queue:get()
		queue:add "a"
		queue:add_after("d", LOW, 1)
		c.workqueue_shutdown(queue.pointer)
		c.turn()
		assert.equal(0, queue.ready)
		queue:add "e"
		queue:add_after("f", LOW, 1)
		assert.is_nil(queue:get())
		queue:done(a)
		assert.near(0.005, queue:retry(b), 1e-12)
		queue:done(b)
		c.advance(10)
		assert.equal(0, queue.ready)
		assert.equal(0, queue:running())
		assert.is_nil(queue:get())
		c.workqueue_shutdown(queue.pointer)
		c.workqueue_check(queue.pointer)
	end)

	it("goes on after its shutdown with what waited, when it is opened again", function()
		local queue = c.queue()
		queue:add "a"
		queue:add_after("b", LOW, 1)
		c.workqueue_shutdown(queue.pointer)
		c.turn()
		queue:add "lost"
		c.workqueue_reopen(queue.pointer)
		c.turn()
		assert.equal(1, queue.ready)
		assert.same({ "a" }, queue:drain())
		c.advance(1)
		assert.same({ "b" }, queue:drain())
		c.workqueue_check(queue.pointer)
	end)

	it("says how long the first in line has waited", function()
		local queue = c.queue()
		assert.equal(0, c.workqueue_age(queue.pointer))
		queue:add("a", LOW)
		c.advance(2)
		queue:add("b", HIGH)
		c.advance(1)
		assert.equal(3, c.workqueue_age(queue.pointer))
		queue:drain()
		assert.equal(0, c.workqueue_age(queue.pointer))
	end)

	it("counts as controller-runtime does", function()
		local queue = c.queue { name = "mirror" }
		local labels = { name = "mirror", controller = "mirror" }
		local function value(name, more)
			local all = { name = "mirror", controller = "mirror" }
			for label, text in pairs(more or {}) do
				all[label] = text
			end
			return c.page():value("workqueue_" .. name, all)
		end
		for _, name in ipairs { "adds_total", "retries_total", "unfinished_work_seconds", "longest_running_processor_seconds",
			"queue_duration_seconds_count", "work_duration_seconds_count" } do
			assert.equal(0, value(name), name)
		end
		for i = 1, 3 do
			queue:add("high" .. i)
			queue:add("high" .. i)
			queue:add("low", LOW)
		end
		queue:add_after("later", LOW, 60)
		assert.equal(4, value "adds_total")
		assert.equal(3, value("depth", { priority = "high" }))
		assert.equal(1, value("depth", { priority = "low" }))
		c.advance(2)
		local first = queue:get()
		c.advance(3)
		local second = queue:get()
		c.advance(5)
		assert.equal(8 + 5, value "unfinished_work_seconds")
		assert.equal(8, value "longest_running_processor_seconds")
		assert.equal(2 + 5, value "queue_duration_seconds_sum")
		assert.equal(0, value("queue_duration_seconds_bucket", { le = "1" }))
		assert.equal(2, value("queue_duration_seconds_bucket", { le = "10" }))
		queue:retry(first)
		queue:done(first)
		queue:done(second)
		assert.equal(2, value "retries_total") -- one of them is no failure
		assert.equal(8 + 5, value "work_duration_seconds_sum")
		assert.equal(0, value "unfinished_work_seconds")
		c.advance(60)
		assert.equal(6, value "adds_total")
		local bounds = {}
		for _, sample in ipairs(c.page():all "workqueue_work_duration_seconds_bucket") do
			bounds[#bounds + 1] = sample.labels.le
		end
		assert.equal("1e-08 1e-07 1e-06 1e-05 0.0001 0.001 0.01 0.1 1 10 100 1000 +Inf", table.concat(bounds, " "))
		queue:free()
		assert.is_nil(c.page():value("workqueue_adds_total", labels))
	end)

	it("lets others have their turn when a great many times come at once", function()
		local queue = c.queue()
		for i = 1, 5000 do
			queue:add_after("key" .. i, LOW, 1)
		end
		c.advance(1)
		local turns = 1
		while queue:depth() < 5000 do
			assert.is_true(queue:depth() <= 1000 * turns)
			c.turn()
			turns = turns + 1
		end
		assert.equal(0, queue:delayed())
	end)

	-- What the C library gives, with its own word before each piece.
	local function counted(body)
		local bytes = 0
		local callback = ffi.cast("alloc_fn", function(_, memory, size)
			bytes = bytes - (memory ~= nil and tonumber(c.malloc_usable_size(memory)) + 8 or 0)
			if size == 0 then
				c.free(memory)
				return nil
			end
			local given = c.realloc(memory, size)
			bytes = bytes + tonumber(c.malloc_usable_size(given)) + 8
			return given
		end)
		c.alloc_replace(callback, nil)
		local ok, problem = pcall(body)
		c.alloc_replace(nil, nil)
		callback:free()
		assert(ok, problem)
		return bytes
	end

	for what, seconds in pairs { ["can be taken"] = 0, ["wait for a time"] = 60 } do
		it("holds 100,000 keys that " .. what .. " in less than 150 bytes each #slow", function()
			local queue = c.queue()
			local bytes = counted(function()
				for i = 1, 100000 do
					queue:add_after(("shop/web-%06d"):format(i), LOW, seconds)
				end
			end)
			assert.is_true(bytes < 150 * 100000, bytes .. " bytes")
			assert.is_true(bytes > 20 * 100000, bytes .. " bytes")
		end)
	end
end)

local KEYS, STEPS, TICK = 12, 4000, 2 ^ -10
local BASE, MAX = 2 ^ -8, 2 -- seconds, in whole ticks

-- The same queue in plain Lua. Times are in whole ticks and no two of them the same, so that each order is certain.
local Model = {}
Model.__index = Model

local function model_new()
	local model = setmetatable({ keys = {}, lines = { [HIGH] = {}, [LOW] = {} }, high_run = 0, adds = 0, retries = 0 }, Model)
	for i = 1, KEYS do
		model.keys["shop/key" .. i] = { failures = 0 }
	end
	return model
end

local function take_out(list, what)
	for i, one in ipairs(list) do
		if one == what then
			return table.remove(list, i)
		end
	end
end

function Model:enter(key)
	table.insert(self.lines[self.keys[key].priority], key)
end

function Model:raise(key, priority)
	local state = self.keys[key]
	local in_line = state.added and not state.running
	if (state.added or state.due) and priority >= state.priority then
		return
	end
	if in_line then
		take_out(self.lines[state.priority], key)
	end
	state.priority = priority
	if in_line then
		self:enter(key)
	end
end

function Model:make_added(key)
	local state = self.keys[key]
	state.due = nil
	if not state.added then
		state.added = true
		self.adds = self.adds + 1
		if not state.running then
			self:enter(key)
		end
	end
end

function Model:add(key, priority)
	local state = self.keys[key]
	if priority == LOW and state.due and state.failures > 0 then
		return
	end
	self:raise(key, priority)
	self:make_added(key)
end

function Model:add_after(key, priority, seconds)
	local state = self.keys[key]
	self.retries = self.retries + 1
	if not state.added then
		self:raise(key, priority)
		state.due = math.min(state.due or math.huge, c.clock_now() + seconds)
	end
end

function Model:has_due(at)
	for _, state in pairs(self.keys) do
		if state.due == at then
			return true
		end
	end
	return false
end

function Model:turn()
	local due = {}
	for key, state in pairs(self.keys) do
		if state.due and state.due <= c.clock_now() then
			due[#due + 1] = key
		end
	end
	table.sort(due, function(a, b) return self.keys[a].due < self.keys[b].due end)
	for _, key in ipairs(due) do
		self:make_added(key)
	end
end

function Model:get()
	local high, low = self.lines[HIGH], self.lines[LOW]
	local line = high
	if #low > 0 and (#high == 0 or self.high_run == 8) then
		line, self.high_run = low, 0
	else
		self.high_run = #low > 0 and self.high_run + 1 or 0
	end
	local key = table.remove(line, 1)
	if key then
		local state = self.keys[key]
		state.added, state.running, state.taken_as = false, true, state.priority
	end
	return key
end

function Model:done(key)
	local state = self.keys[key]
	state.running = false
	if state.added then
		self:enter(key)
	end
end

function Model:retry(key)
	local state = self.keys[key]
	local seconds = math.min(BASE * 2 ^ state.failures, MAX)
	state.failures = state.failures + 1
	self:add_after(key, state.taken_as, seconds)
	return seconds
end

function Model:count(of)
	local count = 0
	for _, state in pairs(self.keys) do
		count = count + (state[of] and 1 or 0)
	end
	return count
end

-- A queue and its model, side by side.
local Pair = {}
Pair.__index = Pair

local function pair_new(where)
	return setmetatable({ queue = c.queue { base = BASE, max = MAX }, model = model_new(), items = {}, wanted = {}, where = where }, Pair)
end

function Pair:any_key()
	return "shop/key" .. math.random(KEYS)
end

function Pair:any_item()
	local keys = {}
	for key in pairs(self.items) do
		keys[#keys + 1] = key
	end
	table.sort(keys)
	return keys[math.random(#keys)]
end

function Pair:turn()
	c.turn()
	self.model:turn()
end

-- Moves the clock to where nothing else is due so many seconds later.
function Pair:make_room(seconds)
	while self.model:has_due(c.clock_now() + seconds) do
		c.clock_set(c.clock_now() + TICK)
	end
end

local STEP = {}

function STEP.add(pair)
	local key, priority = pair:any_key(), math.random(HIGH, LOW)
	pair.queue:add(key, priority)
	pair.model:add(key, priority)
	pair.wanted[key] = true
end

function STEP.add_after(pair)
	local key, priority, seconds = pair:any_key(), math.random(HIGH, LOW), TICK * math.random(2000)
	pair:make_room(seconds)
	pair.queue:add_after(key, priority, seconds)
	pair.model:add_after(key, priority, seconds)
	pair.wanted[key] = true
end

function STEP.get(pair)
	local item, key = pair.queue:get(), pair.model:get()
	assert.equal(key, item and c.key(item), pair.where)
	if key then
		assert.is_nil(pair.items[key], pair.where)
		assert.equal(pair.model.keys[key].taken_as, c.work_item_priority(item), pair.where)
		assert.equal(pair.model.keys[key].failures, c.work_item_failures(item), pair.where)
		assert.equal(c.clock_now(), c.work_item_taken_at(item), pair.where)
		pair.items[key] = item
		pair.wanted[key] = nil
	end
end

local function finish(pair, before)
	local key = pair:any_item()
	if key then
		before(key, pair.items[key])
		pair.queue:done(pair.items[key])
		pair.model:done(key)
		pair.items[key] = nil
	end
end

function STEP.done(pair)
	finish(pair, function() end)
end

function STEP.retry(pair)
	finish(pair, function(key, item)
		pair:make_room(math.min(BASE * 2 ^ pair.model.keys[key].failures, MAX))
		assert.equal(pair.model:retry(key), pair.queue:retry(item), pair.where)
		pair.wanted[key] = true
	end)
end

function STEP.forget(pair)
	finish(pair, function(key, item)
		pair.queue:forget(item)
		pair.model.keys[key].failures = 0
	end)
end

function STEP.advance(pair)
	c.clock_set(c.clock_now() + TICK * math.random(0, 500))
	pair:turn()
end

local NAMES = { "add", "add", "add", "add_after", "get", "get", "get", "get", "done", "retry", "forget", "advance" }

function Pair:compare()
	c.workqueue_check(self.queue.pointer)
	local lines = self.model.lines
	assert.equal(#lines[HIGH] + #lines[LOW], self.queue:depth(), self.where)
	assert.equal(self.model:count "due", self.queue:delayed(), self.where)
	assert.equal(self.model:count "running", self.queue:running(), self.where)
end

-- Until nothing waits any more.
function Pair:finish()
	repeat
		c.clock_set(c.clock_now() + 10)
		self:turn()
		repeat
			STEP.get(self)
			STEP.forget(self)
		until not next(self.items) and self.queue:depth() == 0
	until self.queue:delayed() == 0
end

describe("a work queue in any use #slow", function()
	before_each(c.open)
	after_each(c.close)

	it("does what a plain model does, and gives each key that was added to one worker later", function()
		local seed = c.seed()
		for round = 1, 5 do
			local pair = pair_new()
			for step = 1, STEPS do
				local name = NAMES[math.random(#NAMES)]
				pair.where = ("%s round %d step %d: %s"):format(seed, round, step, name)
				STEP[name](pair)
				pair:compare()
			end
			pair:finish()
			pair:compare()
			assert.same({}, pair.wanted, pair.where)
			local labels = { name = "mirror", controller = "mirror" }
			assert.equal(pair.model.adds, c.page():value("workqueue_adds_total", labels), pair.where)
			assert.equal(pair.model.retries, c.page():value("workqueue_retries_total", labels), pair.where)
			pair.queue:free()
		end
	end)
end)
