local c = require "support.cache_units"
local ffi = c.ffi

describe("queue", function()
	it("gives deltas in the order they came, and frees what waits", function()
		local live = c.live()
		local queue = ffi.new "struct queue"
		c.queue_init(queue)
		assert.is_true(c.queue_pop(queue) == nil)
		local objects = {}
		for i = 1, 5 do
			objects[i] = c.object { name = "n" .. i, version = i }
			c.queue_push(queue, c.put_delta(objects[i]))
		end
		c.queue_push(queue, c.replace_delta(objects, "shop"))
		for i = 1, 3 do
			local delta = c.queue_pop(queue)
			assert.equal("n" .. i, c.key(delta.object))
			c.delta_free(delta)
		end
		assert.equal(3, tonumber(queue.count))
		c.queue_fini(queue)
		assert.equal(0, tonumber(queue.count))
		assert.equal(live, c.live())
	end)
end)
