local c = require "support.cache_units"
local ffi = c.ffi

local MOST_MOVED = 6

describe("keymap", function()
	local map, live

	before_each(function()
		live = c.live()
		map = ffi.new "struct keymap"
		c.keymap_init(map, ffi.cast("keymap_key_fn", c.object_key))
	end)

	after_each(function()
		c.keymap_fini(map)
		assert.equal(live, c.live())
	end)

	local function get(key)
		local item = c.keymap_get(map, key, #key)
		return item ~= nil and ffi.cast("struct object *", item) or nil
	end

	local function remove(key)
		local item = c.keymap_remove(map, key, #key)
		return item ~= nil and ffi.cast("struct object *", item) or nil
	end

	local function all()
		local cursor, found = ffi.new "size_t[1]", {}
		for item in function() local item = c.keymap_next(map, cursor) return item ~= nil and item or nil end do
			local object = ffi.cast("struct object *", item)
			assert.is_nil(found[c.key(object)])
			found[c.key(object)] = object
		end
		return found
	end

	local function waiting()
		local count = 0
		for i = 0, tonumber(map.old.capacity) - 1 do
			count = count + (map.old.items[i] ~= nil and 1 or 0)
		end
		return count
	end

	it("does what a table does, whatever happens", function()
		local seed = c.seed()
		local model, count = {}, 0
		for step = 1, 12000 do
			local where = seed .. " step " .. step
			-- In turns it grows to a few hundred and shrinks to nothing.
			local grows = step % 3000 < 2000
			local key = "n" .. math.random(600)
			if math.random() < (grows and 0.7 or 0.1) then
				local object = c.object { name = key, version = step }
				local before = c.keymap_put(map, object)
				assert.is_true((model[key] or nil) == (before ~= nil and ffi.cast("struct object *", before) or nil), where)
				count = count + (model[key] and 0 or 1)
				model[key] = object
			else
				local known = model[key]
				assert.is_true(remove(key) == known, where)
				count = count - (known and 1 or 0)
				model[key] = nil
			end
			local other = "n" .. math.random(600)
			assert.is_true(get(other) == model[other], where)
			assert.equal(count, tonumber(map.count), where)
			if step % 50 == 0 then
				c.keymap_check(map)
				assert.same(model, all(), where)
			end
		end
		for key, object in pairs(model) do
			assert.is_true(remove(key) == object)
		end
		assert.same({}, all())
	end)

	it("grows in steps, with at least half of its places in use", function()
		local grown = 0
		for i = 1, 3000 do
			local before, capacity = waiting(), tonumber(map.table.capacity)
			c.keymap_put(map, c.object { name = "n" .. i })
			if tonumber(map.table.capacity) > capacity then
				grown = grown + 1
				assert.is_true(i < 30 or before == 0)
			else
				assert.is_true(before - waiting() <= MOST_MOVED)
			end
			assert.is_true(i < 30 or map.old.items ~= nil or map.count * 2 >= map.table.capacity)
		end
		assert.is_true(grown > 10)
		c.keymap_check(map)
	end)

	it("keeps no large table for nothing", function()
		for i = 1, 3000 do
			c.keymap_put(map, c.object { name = "n" .. i })
		end
		for i = 1, 3000 do
			remove("n" .. i)
		end
		assert.equal(0, tonumber(map.table.capacity))
	end)
end)
