-- What is remembered of applies: how much of it, and what a cached object has to be like.
local c = require "support.cache_units"

c.cdef [[
	struct applied;
	struct applied *applied_new(size_t most_bytes);
	void applied_free(struct applied *applied);
	void applied_put(struct applied *applied, struct json_slice key, struct json_slice content, struct json_slice answer);
	void applied_forget(struct applied *applied, struct json_slice key);
	bool applied_knows(struct applied *applied, struct json_slice key, struct json_slice content);
	bool applied_agrees(const struct applied *applied, struct json_slice key, const struct object *object, bool whole);
]]
local ffi = c.ffi

local function object(uid, rest)
	return ('{"metadata":{"name":"a","uid":"%s"},%s}'):format(uid, rest)
end

describe("applied content", function()
	local applied, live

	before_each(function()
		live = c.live()
	end)

	after_each(function()
		applied = nil
		assert.equal(live, c.live())
	end)

	local function open(bytes)
		applied = ffi.gc(c.applied_new(bytes), c.applied_free)
	end

	local function put(key, content, answer)
		c.applied_put(applied, c.slice(key), c.slice(content), c.slice(answer))
	end

	local function knows(key, content)
		return c.applied_knows(applied, c.slice(key), c.slice(content))
	end

	local function agrees(key, text, projected)
		return c.applied_agrees(applied, c.slice(key), (assert(c.object_of(text))), not projected)
	end

	it("is known by its meaning, until it is forgotten or another takes its place", function()
		open(1e6)
		put("k", '{"a":1,"b":2}', object("u", '"a":1,"b":2'))
		assert.is_true(knows("k", '{"b":2,"a":1.0}'))
		assert.is_false(knows("k", '{"a":1}'))
		assert.is_false(knows("l", '{"a":1,"b":2}'))
		put("k", '{"a":1}', object("u", '"a":1'))
		assert.is_true(knows("k", '{"a":1}'))
		assert.is_false(knows("k", '{"a":1,"b":2}'))
		c.applied_forget(applied, c.slice "k")
		c.applied_forget(applied, c.slice "k")
		assert.is_false(knows("k", '{"a":1}'))
	end)

	it("agrees with the object that holds what the answer held", function()
		open(1e6)
		put("k", '{"metadata":{"name":"a"},"spec":{"cpu":"1000m","list":["x"]}}', object("u", '"spec":{"cpu":"1","list":["x","y"],"more":1}'))
		assert.is_true(agrees("k", object("u", '"spec":{"list":["x","y"],"cpu":"1","more":2}')))
		assert.is_false(agrees("k", object("v", '"spec":{"list":["x","y"],"cpu":"1"}')))
		assert.is_false(agrees("k", object("u", '"spec":{"list":["x"],"cpu":"1"}')))
		assert.is_false(agrees("k", object("u", '"spec":{"list":["x","y"],"cpu":"1000m"}')))
		assert.is_false(agrees("k", object("u", '"spec":{"cpu":"1"}')))
		assert.is_false(agrees("k", '{"metadata":{"name":"a","uid":"u","deletionTimestamp":"2030-01-02T03:04:05Z"},"spec":{"list":["x","y"],"cpu":"1"}}'))
		assert.is_false(agrees("l", object("u", '"spec":{}')))
	end)

	it("that is empty, and left out of the answer, agrees with an object that has none either", function()
		open(1e6)
		put("k", '{"spec":{"paused":false,"a":1}}', object("u", '"spec":{"a":1}'))
		assert.is_true(agrees("k", object("u", '"spec":{"a":1}')))
		assert.is_false(agrees("k", object("u", '"spec":{"a":1,"paused":true}')))
		assert.is_false(agrees("k", object("u", '"spec":{"a":1}'), true))
		put("k", '{"spec":{"a":1}}', object("u", '"spec":{"a":1}'))
		assert.is_true(agrees("k", object("u", '"spec":{"a":1}'), true))
	end)

	it("that the answer does not show is not kept", function()
		open(1e6)
		put("k", '{"stringData":{"a":"b"}}', object("u", '"data":{"a":"Yg=="}'))
		assert.is_false(knows("k", '{"stringData":{"a":"b"}}'))
	end)

	it("of an answer that is no object is not kept", function()
		open(1e6)
		for _, answer in ipairs { "7", "{}", '{"metadata":{"uid":7}}' } do
			put("k", "{}", answer)
			assert.is_false(knows("k", "{}"))
		end
	end)

	it("takes as much memory as it may: what was used longest ago goes first", function()
		open(100 * 1024)
		local content = '{"text":"' .. ("x"):rep(1000) .. '"}'
		for i = 1, 1000 do
			put("k" .. i, content, object("u", '"text":"x"'))
			assert.is_true(knows("k1", content))
		end
		local known = 0
		for i = 1, 1000 do
			known = known + (knows("k" .. i, content) and 1 or 0)
		end
		assert.is_true(known > 30 and known < 100, known)
		assert.is_true(knows("k1000", content))
		put("large", '{"text":"' .. ("x"):rep(200 * 1024) .. '"}', object("u", '"text":"x"'))
		assert.is_true(knows("k1000", content))
	end)
end)
