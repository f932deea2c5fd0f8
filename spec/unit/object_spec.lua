local c = require "support.cache_units"
local seed_random = require "support.seed"
local ffi = c.ffi

local function with(metadata)
	return '{"kind":"X","metadata":' .. metadata .. ',"spec":{}}'
end

describe("object", function()
	it("keeps the bytes and knows its names", function()
		local json = with '{"name":"web-1","namespace":"shop","uid":"7f","resourceVersion":"42"}'
		local object = assert(c.object_of(json))
		assert.equal(json, c.text(c.object_open(object, nil)))
		assert.equal("shop/web-1", c.key(object))
		assert.same({ "shop", "web-1", "7f", "42" }, { c.namespace(object), ffi.string(c.object_name(object)),
			c.uid(object), c.version(object) })
		assert.equal(#json, tonumber(c.object_length(object)))
		assert(c.object_held(object) >= #json)
	end)

	it("of a cluster-scoped kind has its name as its key", function()
		local object = assert(c.object_of(with '{"name":"node-1"}'))
		assert.equal("node-1", c.key(object))
		assert.same({ "", "node-1", "", "" }, { c.namespace(object), ffi.string(c.object_name(object)),
			c.uid(object), c.version(object) })
	end)

	it("reads escaped names", function()
		local object = assert(c.object_of(with '{"name":"\\u0061b","namespace":"\\u0073hop","uid":"\\u0037f","resourceVersion":"\\u0034"}'))
		assert.equal("shop/ab", c.key(object))
		assert.equal("4", c.version(object))
	end)

	it("takes null for absent", function()
		local object = assert(c.object_of(with '{"name":"a","namespace":null,"uid":null,"resourceVersion":null}'))
		assert.equal("a", c.key(object))
	end)

	it("knows whether its deletion has begun", function()
		for metadata, ending in pairs {
			['{"name":"a"}'] = false, ['{"name":"a","deletionTimestamp":null}'] = false,
			['{"name":"a","deletionTimestamp":"2020-01-01T00:00:00Z"}'] = true,
			['{"name":"a","uid":"7f","labels":{"a":"b"},"deletionTimestamp":"2020-01-01T00:00:00Z"}'] = true,
			['{"name":"a","deletionTimestamp":"2020-01-01T00:00:00Z","deletionTimestamp":null}'] = false,
		} do
			local object = assert(c.object_of(with(metadata)))
			assert.equal(ending, c.object_is_ending(object), metadata)
		end
	end)

	for what, metadata in pairs {
		["has no metadata.name"] = "{}",
		["metadata.name is no string"] = '{"name":5}',
		["metadata.uid is no string"] = '{"name":"a","uid":{}}',
		["metadata.name is longer than 253 bytes"] = '{"name":"' .. ("x"):rep(254) .. '"}',
		["metadata.namespace is longer than 253 bytes"] = '{"name":"a","namespace":"' .. ("\\u0061"):rep(2000) .. '"}',
		["metadata.resourceVersion is longer than 64 bytes"] = '{"name":"a","resourceVersion":"' .. ("1"):rep(65) .. '"}',
		["metadata.name holds a slash"] = '{"name":"a/b"}',
		["metadata.name holds a NUL"] = '{"name":"a\\u0000b"}',
	} do
		it("is refused when its " .. what, function()
			local object, message = c.object_of(with(metadata))
			assert.is_nil(object)
			assert.equal("an object" .. (what:match "^has" and " " or "'s ") .. what, message)
		end)
	end

	it("takes names as long as the API's, escaped or not", function()
		local long = ("n"):rep(253)
		local escaped = ("\\u006e"):rep(253)
		for _, text in ipairs { long, escaped } do
			local object = assert(c.object_of(with(('{"name":"%s","namespace":"%s","uid":"%s"}'):format(text, text, text))))
			assert.equal(long .. "/" .. long, c.key(object))
		end
	end)

	it("keeps its uid letter for letter, whether or not the API writes such", function()
		for _, uid in ipairs {
			"0a1b2c3d-4e5f-4789-8abc-def012345678", "0A1B2C3D-4E5F-4789-8ABC-DEF012345678", "0a1b2c3d-4e5f-4789-8abc-def01234567F",
			"0a1b2c3d-4e5f-4789-8abc-def01234567g", "0a1b2c3d04e5f-4789-8abc-def012345678", "0a1b2c3d4e5f47898abcdef012345678",
		} do
			assert.equal(uid, c.uid(assert(c.object_of(with(('{"name":"a","uid":"%s"}'):format(uid))))))
		end
	end)

	it("goes with its last reference", function()
		local before = c.live()
		local object = c.object { name = "a" }
		c.object_ref(object)
		assert.equal(before + 1, c.live()) -- which let go of the first one
		c.object_unref(object)
		assert.equal(before, c.live())
	end)

	describe("packed", function()
		local function texts(count)
			local list = {}
			for i = 1, count do
				list[i] = ('{"metadata":{"name":"web-%d","uid":"00000000-0000-4000-8000-%012x"},"spec":{"nodeName":"node-%d","image":"web:%d"}}')
					:format(i, i, i % 7, i % 5)
			end
			return list
		end

		local function learn(list, kind)
			local lengths = ffi.new("size_t[?]", #list)
			for i, text in ipairs(list) do
				lengths[i - 1] = #text
			end
			return c.dictionary_new(kind or 0, table.concat(list), lengths, #list)
		end

		local scratch = ffi.new "struct buf[2]"

		local function opened(object)
			return c.text(c.object_open(object, scratch[0]))
		end

		local function pack(object, dictionary)
			c.object_pack(object, dictionary, scratch)
		end

		after_each(function()
			c.buf_fini(scratch[0])
			c.buf_fini(scratch[1])
			c.live() -- objects go, and with them their dictionaries
		end)

		it("takes less and says the same, with one dictionary and then with another", function()
			local list = texts(400)
			local first, second = learn(list), learn(texts(300), 1)
			local objects = {}
			for i, text in ipairs(list) do
				objects[i] = assert(c.object_of(text))
				local before = tonumber(c.object_held(objects[i]))
				pack(objects[i], first)
				assert(tonumber(c.object_held(objects[i])) < before - 60)
				assert.equal(text, opened(objects[i]))
				assert.equal(#text, tonumber(c.object_length(objects[i])))
				assert.equal(("00000000-0000-4000-8000-%012x"):format(i), c.uid(objects[i]))
			end
			c.dictionary_rest(first)
			c.dictionary_unref(first) -- which lives on for those that it has packed
			for i = 1, #list, 2 do
				pack(objects[i], second)
			end
			for i, text in ipairs(list) do
				assert.equal(i % 2 == 1, c.object_is_packed(objects[i], second))
				assert.equal(text, opened(objects[i]))
			end
			c.dictionary_unref(second)
		end)

		it("compares by content, however each is held", function()
			local list = texts(300)
			local dictionary = learn(list)
			local a, b, other = assert(c.object_of(list[1])), assert(c.object_of(list[1])), assert(c.object_of(list[4]))
			pack(a, dictionary)
			assert.is_true(c.object_same_content(a, b))
			pack(b, dictionary)
			pack(other, dictionary)
			assert.is_true(c.object_same_content(a, b))
			assert.is_false(c.object_same_content(a, other))
			c.dictionary_unref(dictionary)
		end)

		it("stays raw where that is no gain", function()
			local dictionary = learn(texts(300))
			local tiny = assert(c.object_of '{"metadata":{"name":"q"}}')
			local noise = {}
			for i = 1, 500 do
				noise[i] = string.char(35 + (i * 7919 + i * i * 31) % 57)
			end
			local odd = assert(c.object_of('{"metadata":{"name":"' .. table.concat(noise):gsub("[/\\]", "x"):sub(1, 200) .. '"}}'))
			for _, object in ipairs { tiny, odd } do
				local before = opened(object)
				pack(object, dictionary)
				assert.equal(before, opened(object))
			end
			c.dictionary_unref(dictionary)
		end)

		it("goes on with others behind one that is no gain", function()
			local seed = seed_random()
			local others = {}
			for i = 1, 300 do
				others[i] = ("0123 4567 89ab %x"):format(i * 2654435761 % 2 ^ 32):rep(9)
			end
			local dictionary = learn(others)
			local usual = '{"metadata":{"name":"u"},"data":"' .. others[1] .. '"}'
			for i = 1, 250 do
				local noise = {}
				for at = 1, i do
					noise[at] = string.char(math.random(0x30, 0x5B))
				end
				local text = ('{"metadata":{"name":"%s"}}'):format(table.concat(noise))
				local odd, object = assert(c.object_of(text)), assert(c.object_of(usual))
				pack(odd, dictionary)
				pack(object, dictionary)
				assert(text == opened(odd), seed)
				assert.is_true(c.object_is_packed(object, dictionary), seed)
				assert.equal(usual, opened(object))
			end
			c.dictionary_unref(dictionary)
		end)

		it("learns nothing from too little", function()
			assert.is_true(learn { "a", "b" } == nil)
		end)
	end)

	describe("version", function()
		local function compare(a, b)
			local comparable = ffi.new "bool[1]"
			local order = c.object_version_compare(a, b, comparable)
			return order < 0 and -1 or order > 0 and 1 or 0, comparable[0]
		end

		it("compares integers of any length as such", function()
			local cases = { { "9", "10", -1 }, { "10", "9", 1 }, { "7", "7", 0 }, { "0", "0", 0 }, { "007", "7", 0 }, { "0", "1", -1 },
				{ "99999999999999999999999999", "100000000000000000000000000", -1 }, { "12", "13", -1 } }
			for _, case in ipairs(cases) do
				local order, comparable = compare(case[1], case[2])
				assert.same({ case[3], true }, { order, comparable })
			end
		end)

		it("says only whether others are equal", function()
			for _, case in ipairs { { "a", "b" }, { "1a", "2" }, { "", "1" }, { "-1", "1" } } do
				local order, comparable = compare(case[1], case[2])
				assert.is_false(comparable)
				assert.not_equal(0, order)
			end
			assert.same({ 0, false }, { compare("a", "a") })
			assert.same({ 0, false }, { compare("", "") })
		end)
	end)
end)
