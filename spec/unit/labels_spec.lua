local c = require "support.cache_units"
local ffi = c.ffi

local UNKNOWN, NONE = 0, 1
local ALONE = 256 * 1024

describe("labels", function()
	local live, before

	before_each(function()
		live = c.live()
		before = tonumber(c.labels_held())
	end)

	local function held()
		return tonumber(c.labels_held()) - before
	end

	after_each(function()
		assert.equal(live, c.live())
		assert.equal(0, held())
		c.labels_check()
	end)

	local function take(labels, key)
		return c.labels_take(labels and c.slice(labels) or ffi.new "struct json_slice", c.slice(key))
	end

	local function give_all(numbers, from)
		for i = from or 1, #numbers do
			c.labels_give(numbers[i])
		end
	end

	local function unique(i)
		return ('{"app":"web-%d","batch.kubernetes.io/controller-uid":"00000000-0000-4000-8000-%012x"}'):format(i, i)
	end

	it("holds a set once, however many objects have it", function()
		local shared = '{"app":"web","pod-template-hash":"5f1d2c8b7a"}'
		local first = take(shared, "u1")
		local of_one = held()
		for i = 2, 20 do
			assert.equal(first, take(shared, "u" .. i))
		end
		assert.equal(of_one, held())
		assert.equal(shared, c.text(c.labels_bytes(first)))
		assert.is_true(of_one < #shared + 40)
		for _ = 1, 20 do
			c.labels_give(first)
		end
	end)

	it("knows which objects have none", function()
		for _, metadata in ipairs { '{"name":"a"}', '{"name":"a","labels":null}', '{"name":"a","labels":{"x":"y"},"labels":null}' } do
			local object = assert(c.object_of('{"metadata":' .. metadata .. "}"))
			assert.equal(NONE, c.object_labels(object))
			assert.is_true(c.labels_bytes(c.object_labels(object)).data == nil)
		end
	end)

	it("keeps the bytes of each set as long as one object has it, whatever comes and goes", function()
		local seed = c.seed()
		local objects = {}
		for step = 1, 6000 do
			local where = seed .. " step " .. step
			local grows = step % 2000 < 1200
			if #objects == 0 or math.random() < (grows and 0.7 or 0.2) then
				local labels = ('{"a":"%s"}'):format(("x"):rep(math.random(0, 80)))
				objects[#objects + 1] = { labels = labels, number = take(labels, "u" .. step) }
			else
				local last = table.remove(objects, math.random(#objects))
				c.labels_give(last.number)
			end
			local one = objects[math.random(math.max(#objects, 1))]
			if one then
				assert(one.number > NONE and one.number < c.labels_end(), where)
				assert(c.text(c.labels_bytes(one.number)) == one.labels, where)
			end
			if step % 50 == 0 then
				c.labels_check()
			end
		end
		for _, one in ipairs(objects) do
			c.labels_give(one.number)
		end
	end)

	it("takes little for objects whose labels are their own, and for their updates, and then still holds what is shared", function()
		local numbers = {}
		for _ = 1, 3 do
			for i = 1, 10000 do
				numbers[#numbers + 1] = take(unique(i), "u" .. i)
			end
			assert.is_true(held() <= ALONE)
		end
		assert.is_true(numbers[1] > NONE)
		assert.equal(UNKNOWN, numbers[10000])
		c.labels_check()
		for workload = 1, 500 do
			local shared = ('{"app":"shared-%d"}'):format(workload)
			local found = {}
			for replica = 1, 3 do
				found[replica] = take(shared, workload .. "-" .. replica)
				numbers[#numbers + 1] = found[replica]
			end
			assert.is_true(found[2] > NONE and found[2] == found[3])
		end
		give_all(numbers)
	end)

	it("takes as little where such objects are made anew, as those of a StatefulSet are", function()
		local objects = {}
		for life = 1, 2 do
			for i = 1, 5000 do
				local name = ("db-%d"):format(i)
				local labels = ('{"app":"db","statefulset.kubernetes.io/pod-name":"%s","apps.kubernetes.io/pod-index":"%d"}'):format(name, i)
				local object = assert(c.object_new(c.slice(('{"metadata":{"name":"%s","uid":"%d-%d","labels":%s}}'):format(
					name, life, i, labels)), nil))
				c.object_unref(objects[i])
				objects[i] = object
			end
			assert.is_true(held() <= ALONE)
		end
		for _, object in ipairs(objects) do
			c.object_unref(object)
		end
	end)

	it("makes room again when objects go", function()
		local numbers = {}
		for i = 1, 10000 do
			numbers[i] = take(unique(i), "u" .. i)
		end
		assert.equal(UNKNOWN, take(unique(20000), "u"))
		for i = 1, 100 do
			c.labels_give(numbers[i])
		end
		local again = take(unique(20001), "v")
		assert.is_true(again > NONE)
		c.labels_give(again)
		give_all(numbers, 101)
	end)

	local function of_length(length)
		return '{"a":"' .. ("x"):rep(length - #'{"a":""}') .. '"}'
	end

	it("holds sets as long as the longest, and none that is longer", function()
		local numbers = {}
		for _, length in ipairs { 500, 512, 2000, 2030, 2036, 2037, 2038, 2039, 2040, 2048, 2049, 3000, 4095, 4096 } do
			local set = of_length(length)
			local number = take(set, "u")
			assert.is_true(number > NONE)
			assert.equal(number, take(set, "v"))
			assert.equal(set, c.text(c.labels_bytes(number)))
			numbers[#numbers + 1] = number
		end
		c.labels_check()
		for _, length in ipairs { 4097, 5000, 70000 } do
			for i = 1, 3 do
				assert.equal(UNKNOWN, take(of_length(length), "u" .. i))
			end
		end
		for _, number in ipairs(numbers) do
			c.labels_give(number)
			c.labels_give(number)
		end
	end)

	it("is given back what is no set without harm", function()
		local number = take('{"a":"b"}', "u")
		c.labels_give(UNKNOWN)
		c.labels_give(NONE)
		assert.equal('{"a":"b"}', c.text(c.labels_bytes(number)))
		c.labels_give(number)
		c.labels_give(NONE)
	end)

	it("of a packed object are those of the raw one, until it goes", function()
		local texts, lengths = {}, ffi.new("size_t[?]", 300)
		for i = 1, 300 do
			texts[i] = ('{"metadata":{"name":"web-%d","labels":{"app":"web"}},"spec":{"nodeName":"node-%d"}}'):format(i, i % 7)
			lengths[i - 1] = #texts[i]
		end
		local dictionary, scratch = c.dictionary_new(0, table.concat(texts), lengths, 300), ffi.new "struct buf[2]"
		local object = assert(c.object_of(texts[1]))
		local number = c.object_labels(object)
		c.object_pack(object, dictionary, scratch)
		assert.is_true(c.object_is_packed(object, dictionary))
		assert.equal(number, c.object_labels(object))
		assert.equal('{"app":"web"}', c.text(c.labels_bytes(number)))
		c.dictionary_unref(dictionary)
		c.buf_fini(scratch[0])
		c.buf_fini(scratch[1])
	end)
end)
