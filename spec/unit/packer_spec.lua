local c = require "support.cache_units"
local process = require "support.process"
local ffi = c.ffi

c.cdef [[
  struct packer;
  struct packer *packer_new(struct loop *loop, const struct store *store);
  void packer_free(struct packer *packer);
  void packer_add(struct packer *packer, struct object *object);
  void packer_fill(struct packer *packer);
  void clock_stop(void);
  void clock_set(double now);
  void clock_go(void);
]]

local BUDGET = 1.5 * 1024 * 1024

local function threads()
	for line in io.lines "/proc/self/status" do
		local count = line:match "^Threads:%s*(%d+)"
		if count then
			return tonumber(count)
		end
	end
end

describe("packer", function()
	local loop, store, packer, texts, live

	local function advance(seconds)
		c.clock_set(c.clock_now() + seconds)
		c.loop_turn(loop, 0)
	end

	-- As the API writes them: much is the same in each, some is its own.
	local function text_of(kind, i)
		local values = {}
		for line = 1, kind == "large" and 80 or 12 do
			values[line] = ('"%s-setting-%d":"%x and what is the same in each"'):format(kind, line, i * line * 2654435761 % 2 ^ 32)
		end
		return ('{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s-%d","resourceVersion":"%d"},"data":{%s}}')
			:format(kind, i, i, table.concat(values, ","))
	end

	-- The object of that name, which texts has.
	local function put(name)
		local object = c.object_new(c.slice(texts[name]), nil)
		c.packer_add(packer, object)
		c.object_unref(c.store_put(store, object))
		c.object_unref(object)
	end

	local function add(kind, from, to)
		for i = from, to do
			texts[kind .. "-" .. i] = text_of(kind, i)
			put(kind .. "-" .. i)
		end
	end

	-- Bytes that the objects take, and of their JSON. Each says what it said when it came.
	local function measure()
		local held, json = 0, 0
		local scratch = ffi.new "struct buf"
		c.visit(function(visit)
			c.store_each(store, nil, visit, nil)
		end, function(object)
			held = held + tonumber(c.object_held(object))
			json = json + tonumber(c.object_length(object))
			assert.equal(texts[c.key(object)], c.text(c.object_open(object, scratch)))
		end)
		c.buf_fini(scratch)
		return held, json
	end

	-- Of the packer's clock that many seconds pass, as many as it takes where none are said. Its threads work in real time.
	local function await(most, seconds)
		local deadline, left, held = process.now() + 20, seconds or math.huge
		repeat
			if left > 0 then
				advance(1)
				left = left - 1
			end
			c.loop_turn(loop, 0.01)
			held = measure()
		until held <= most or process.now() > deadline
		assert(held <= most, ("%d bytes, and not %d"):format(held, most))
		return held
	end

	before_each(function()
		live, texts = c.live(), {}
		c.clock_stop()
		loop = c.loop_new(c.err())
		store = c.store_new()
		packer = c.packer_new(loop, store)
	end)

	after_each(function()
		c.packer_free(packer)
		c.store_free(store)
		c.loop_free(loop)
		c.clock_go()
		assert.equal(live, c.live())
	end)

	it("packs what has come, within a second or two", function()
		add("web", 1, 1000)
		advance(0)
		local held, json = measure()
		assert(held > json, "packed at once")
		await(json / 2, 2)
	end)

	it("lets no more than twice the budget be raw", function()
		add("web", 1, 12000)
		advance(0)
		local held, json = measure()
		assert(json > 5 * BUDGET and held < 2 * BUDGET + json / 2, ("%d of %d bytes"):format(held, json))
	end)

	it("is not in the way of what goes while it is being packed", function()
		add("web", 1, 2000)
		advance(1)
		advance(1)
		assert(measure() > 0.8 * 775004, "packed already")
		for i = 1, 2000 do
			local key = "web-" .. i
			c.object_unref(c.store_remove(store, key, #key))
		end
		add("web", 1, 1000)
		await(775004 / 2)
	end)

	it("keeps no thread for a trickle", function()
		local before = threads()
		add("web", 1, 1000)
		await(775004 / 2)
		local deadline, i = process.now() + 20, 1000
		repeat
			i = i + 1
			add("web", i, i)
			advance(1)
			c.loop_turn(loop, 0.01)
		until threads() == before or process.now() > deadline
		assert.equal(before, threads())
	end)

	it("leaves a small store as it is", function()
		add("web", 1, 50)
		c.packer_fill(packer)
		for _ = 1, 4 do
			advance(1)
		end
		local held, json = measure()
		assert(held >= json)
	end)

	it("learns anew, from all, when the store is filled", function()
		add("a", 1, 1000)
		await(775004 / 2)
		add("b", 1, 4000)
		local _, json = measure()
		local before = await(json / 2)
		c.packer_fill(packer)
		await(0.9 * before)
	end)

	it("learns from each of many kinds of objects, in whatever order they come", function()
		local FAMILIES = 40 -- as many as there are objects between two samples, on average
		for i = 1, 4000 do
			local words = {}
			for line = 1, 42 do
				words[line] = ('"%x-%x":"%s"'):format(i % FAMILIES, line * 2654435761 % 2 ^ 32, i % FAMILIES * line * 40503 % 2 ^ 32)
			end
			local name = "family-" .. i
			texts[name] = ('{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"},"data":{%s,%s}}'):format(
				name, table.concat(words, ","), text_of("large", 1):match '"data":{(.*)}}')
			put(name)
		end
		local _, json = measure()
		assert(json > 16 * 1024 * 1024)
		local before = await(json / 2)
		c.packer_fill(packer)
		await(before / 3)
	end)

	it("packs what comes later, densely in a large store", function()
		add("large", 1, 4000)
		local _, json = measure()
		local first = await(json / 2)
		assert(json > 16 * 1024 * 1024)
		c.packer_fill(packer)
		local held = await(0.8 * first)
		add("large", 1, 300) -- the same again
		assert(measure() > held + json * 300 / 4000 / 2)
		await(held * 1.01)
		add("large", 1, 3000) -- in a hurry
		assert(measure() > held + json * 3000 / 4000 / 2)
		await(held * 1.01)
	end)
end)
