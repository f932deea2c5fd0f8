-- A relist in turns: the same as at once, and whoever looks meanwhile sees what was before it or what is after it.
local c = require "support.cache_units"
local ffi = c.ffi

local KEYS, SPACES = 60, { "shop", "farm" }
local CHANGING = 3 -- the phase

-- A store with its own writes and an index, and what handlers are told of it.
local Cache = {}
Cache.__index = Cache

local function new_cache()
	local self = setmetatable({ store = c.store_new(), overlay = ffi.new "struct overlay", apply = ffi.new "struct apply", lines = {} }, Cache)
	c.overlay_init(self.overlay, self.store)
	c.store_add_index(self.store, "v", c.store_path_index(c.json_path_new("data.v", nil)))
	self.notify = ffi.cast("void (*)(void *, const struct notification *)", function(_, notification)
		local old = notification.old ~= nil and c.version(notification.old) .. "->" or ""
		local flags = (notification.initial and " initial" or "") .. (notification.final_state_unknown and " unknown" or "")
		table.insert(self.lines, c.types[notification.type] .. " " .. c.key(notification.object) .. " " .. old
			.. c.version(notification.object) .. flags)
	end)
	self.apply.store, self.apply.overlay, self.apply.notify = self.store, self.overlay, self.notify
	return self
end

function Cache:free()
	c.overlay_fini(self.overlay)
	c.store_free(self.store)
	self.notify:free()
end

function Cache:list()
	return c.visit(function(callback)
		c.store_each(self.store, nil, callback, nil)
	end)
end

function Cache:found(value)
	local found = c.visit(function(callback)
		c.store_each_index(self.store, "v", value, #value, callback, nil)
	end)
	table.sort(found)
	return found
end

-- All that can be read, as one value.
function Cache:read()
	local space = c.visit(function(callback)
		c.store_each(self.store, "farm", callback, nil)
	end)
	return { list = self:list(), farm = space, zero = self:found "0", one = self:found "1", count = tonumber(c.store_count(self.store)) }
end

function Cache:heard()
	local lines = self.lines
	self.lines = {}
	return lines
end

describe("a relist in turns", function()
	local version

	local function object(namespace, name, uid)
		version = version + 1
		return c.object { name = name, namespace = namespace, uid = uid or "uid-" .. name, version = version,
			data = { v = tostring(version % 2) } }
	end

	local function random_object(fresh)
		local name = "n" .. math.random(KEYS)
		return object(SPACES[math.random(2)], name, fresh and "uid-" .. version or nil)
	end

	local function random_list(held)
		local objects, seen = {}, {}
		local function add(one)
			if not seen[c.key(one)] then
				seen[c.key(one)] = true
				objects[#objects + 1] = one
			end
		end
		for _, line in ipairs(held:list()) do
			local key, chance = line:match "^%S+", math.random()
			local stored = c.store_get_key(held.store, key, #key)
			if chance < 0.7 then
				add(c.hold(stored))
			elseif chance < 0.85 then
				add(object(c.namespace(stored), ffi.string(c.object_name(stored)),
					math.random() < 0.5 and c.uid(stored) or nil))
			end
		end
		for _ = 1, math.random(0, 10) do
			add(random_object(true))
		end
		return objects
	end

	local function own_writes(both)
		for _ = 1, math.random(0, 3) do
			local own, shown = random_object(), math.random() < 0.8
			for _, each in ipairs(both) do
				c.overlay_put(each.overlay, own, shown)
			end
		end
	end

	-- Whole and at once, or in turns with readers in between.
	local function at_once(held, delta, initial)
		assert.is_true(c.apply_delta(held.apply, delta, initial, math.huge))
		c.delta_free(delta)
	end

	local function in_turns(held, delta, initial, after, where)
		local before, turns = held:read(), 1
		while not c.apply_delta(held.apply, delta, initial, 0) do
			turns = turns + 1
			if math.random() < 0.3 then
				if c.apply_is_torn(held.apply) then
					c.apply_mend(held.apply, delta)
				end
				assert.same(held.apply.replace.phase < CHANGING and before or after, held:read(), where)
			end
		end
		c.delta_free(delta)
		return turns
	end

	it("is what it is at once, and is never seen half done", function()
		local seed, live, most = c.seed(), c.live(), 0
		for round = 1, 60 do
			local where = seed .. " round " .. round
			local once, turns = new_cache(), new_cache()
			version = 0
			local objects = {}
			for i = 1, math.random(KEYS) do
				objects[i] = object(SPACES[i % 2 + 1], "n" .. i)
			end
			at_once(once, c.replace_delta(objects, nil, { version = version }), true)
			most = math.max(most, in_turns(turns, c.replace_delta(objects, nil, { version = version }), true, once:read(), where))
			assert.same(once:heard(), turns:heard(), where)
			for _ = 1, 3 do
				own_writes { once, turns }
				local list = random_list(once)
				local more = { version = math.random() < 0.5 and version or version - 2, truth = math.random() < 0.3 }
				at_once(once, c.replace_delta(list, nil, more), false)
				in_turns(turns, c.replace_delta(list, nil, more), false, once:read(), where)
				assert.same(once:heard(), turns:heard(), where)
				assert.same(once:read(), turns:read(), where)
				c.store_check(turns.store)
				c.overlay_check(turns.overlay)
			end
			once:free()
			turns:free()
			assert.equal(live, c.live(), where)
		end
		assert.is_true(most > 5)
	end)

	it("that is given up leaves nothing behind", function()
		local seed, live = c.seed(), c.live()
		for stop = 1, 25 do
			local held = new_cache()
			version = 0
			local objects = {}
			for i = 1, KEYS do
				objects[i] = object("shop", "n" .. i)
			end
			at_once(held, c.replace_delta(objects, nil, { version = version }), true)
			local delta = c.replace_delta(random_list(held), nil, { version = version })
			for _ = 1, stop do
				if c.apply_delta(held.apply, delta, false, 0) then
					break
				end
			end
			c.apply_drop(held.apply, delta)
			c.delta_free(delta)
			held:free()
			assert.equal(live, c.live(), seed)
		end
	end)

	it("compares before it changes anything: what did not change costs no reader anything", function()
		local live, held = c.live(), new_cache()
		version = 0
		local objects = {}
		for i = 1, KEYS do
			objects[i] = object("shop", "n" .. i)
		end
		at_once(held, c.replace_delta(objects, nil), true)
		local delta = c.replace_delta(objects, nil)
		local turns = 0
		while not c.apply_delta(held.apply, delta, false, 0) do
			turns = turns + 1
			assert.is_false(c.apply_is_torn(held.apply))
		end
		assert.is_true(turns > 5)
		assert.equal(KEYS, #held:heard()) -- of the first list
		c.delta_free(delta)
		held:free()
		assert.equal(live, c.live())
	end)
end)
