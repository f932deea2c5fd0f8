-- work_units: the work queue of core/work for unit specs, on a loop and a clock of the spec's own.
--
--   local queue = units.queue { qps = 10, burst = 2 }    base 5 ms and max 1000 s unless said
--   queue:add("shop/a", units.HIGH), queue:add_after("shop/a", units.LOW, 3)
--   queue:get()               the next item, or nil; queue:done(item), queue:retry(item), queue:forget(item)
--   queue.ready               how often on_ready was called
--   units.advance(seconds)    moves the clock and turns the loop
--   units.open(), units.close()    around each spec; nothing may be left alive after it
local c = require "support.cache_units"
local exposition = require "support.exposition"
local ffi = c.ffi

c.cdef [[
  void clock_stop(void);
  void clock_set(double now);
  void clock_go(void);

  struct metric_registry;
  struct metric_registry *metric_registry_new(void);
  void metric_registry_free(struct metric_registry *registry);
  void metric_write(struct metric_registry *registry, struct buf *out);

  struct workqueue;
  struct work_item;
  struct workqueue_options {
    const char *name;
    double base, max, qps;
    unsigned burst;
    struct metric_registry *metrics;
    void (*on_ready)(void *data);
    void *data;
  };
  struct workqueue *workqueue_new(struct loop *loop, const struct workqueue_options *options);
  void workqueue_free(struct workqueue *queue);
  void workqueue_add(struct workqueue *queue, const char *key, size_t length, int priority);
  void workqueue_add_after(struct workqueue *queue, const char *key, size_t length, int priority, double seconds);
  struct work_item *workqueue_get(struct workqueue *queue);
  void workqueue_done(struct workqueue *queue, struct work_item *item);
  double workqueue_retry(struct workqueue *queue, struct work_item *item);
  void workqueue_forget(struct workqueue *queue, struct work_item *item);
  const char *work_item_key(const struct work_item *item, size_t *length);
  unsigned work_item_failures(const struct work_item *item);
  int work_item_priority(const struct work_item *item);
  double work_item_taken_at(const struct work_item *item);
  void workqueue_shutdown(struct workqueue *queue);
  void workqueue_reopen(struct workqueue *queue);
  size_t workqueue_depth(const struct workqueue *queue);
  size_t workqueue_delayed(const struct workqueue *queue);
  size_t workqueue_running(const struct workqueue *queue);
  double workqueue_age(const struct workqueue *queue);
  void workqueue_check(const struct workqueue *queue);
]]

if not pcall(function() return ffi.C.workqueue_new end) then
	c.library "work"
end

local units = setmetatable({}, { __index = c })

units.HIGH, units.LOW = 0, 1

local START = 1000 -- of the clock

local loop, registry, queues, live

function units.open()
	live = c.alloc_live(nil)
	c.clock_stop()
	c.clock_set(math.max(math.ceil(c.clock_now()), START)) -- whole, so that sums with small powers of 2 are exact
	loop = c.loop_new(c.err())
	registry = c.metric_registry_new()
	queues = {}
end

function units.close()
	for _, queue in ipairs(queues) do
		queue:free()
	end
	c.metric_registry_free(registry)
	c.loop_free(loop)
	c.clock_go()
	assert(c.alloc_live(nil) == live, "something was left alive")
end

function units.loop()
	return loop
end

--- Runs what is due and posted at the present time.
function units.turn()
	c.loop_turn(loop, 0)
end

function units.advance(seconds)
	c.clock_set(c.clock_now() + seconds)
	units.turn()
end

--- The page of metrics, as a strict reader has read it.
function units.page()
	local out = c.buf()
	c.metric_write(registry, out)
	return exposition.read(ffi.string(c.buf_text(out)))
end

local Queue = {}
Queue.__index = Queue

function units.queue(options)
	options = options or {}
	local queue = setmetatable({ ready = 0, taken = {} }, Queue)
	queue.on_ready = ffi.cast("void (*)(void *)", function()
		queue.ready = queue.ready + 1
	end)
	queue.pointer = c.workqueue_new(loop, ffi.new("struct workqueue_options", {
		name = options.name or "mirror", base = options.base or 0.005, max = options.max or 1000, qps = options.qps or 0,
		burst = options.burst or 0, metrics = registry, on_ready = queue.on_ready,
	}))
	queues[#queues + 1] = queue
	return queue
end

--- A spec that failed may have left items with workers.
function Queue:free()
	if self.pointer then
		for _, item in pairs(self.taken) do
			c.workqueue_done(self.pointer, item)
		end
		c.workqueue_free(self.pointer)
		self.on_ready:free()
		self.pointer = nil
	end
end

function Queue:add(key, priority)
	c.workqueue_add(self.pointer, key, #key, priority or units.HIGH)
end

function Queue:add_after(key, priority, seconds)
	c.workqueue_add_after(self.pointer, key, #key, priority, seconds)
end

function Queue:get()
	local item = c.workqueue_get(self.pointer)
	if item ~= nil then
		self.taken[tostring(item)] = item
		return item
	end
end

function Queue:done(item)
	self.taken[tostring(item)] = nil
	c.workqueue_done(self.pointer, item)
end

function Queue:retry(item)
	return c.workqueue_retry(self.pointer, item)
end

function Queue:forget(item)
	c.workqueue_forget(self.pointer, item)
end

function Queue:depth()
	return tonumber(c.workqueue_depth(self.pointer))
end

function Queue:delayed()
	return tonumber(c.workqueue_delayed(self.pointer))
end

function Queue:running()
	return tonumber(c.workqueue_running(self.pointer))
end

--- Takes all that can be taken, and is done with each; their keys.
function Queue:drain()
	local keys = {}
	for item in function() return self:get() end do
		keys[#keys + 1] = units.key(item)
		self:done(item)
	end
	return keys
end

--- The key of an item.
function units.key(item)
	local length = ffi.new "size_t[1]"
	local key = c.work_item_key(item, length)
	assert(key[length[0]] == 0)
	return ffi.string(key, length[0])
end

return units
