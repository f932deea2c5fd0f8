local c = require "support.cache_units"
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
		assert.same({ "shop", "web-1", "7f", "42" }, { ffi.string(c.object_namespace(object)), ffi.string(c.object_name(object)),
			ffi.string(c.object_uid(object)), c.version(object) })
		assert(c.object_bytes(object) >= #json)
	end)

	it("of a cluster-scoped kind has its name as its key", function()
		local object = assert(c.object_of(with '{"name":"node-1"}'))
		assert.equal("node-1", c.key(object))
		assert.same({ "", "node-1", "", "" }, { ffi.string(c.object_namespace(object)), ffi.string(c.object_name(object)),
			ffi.string(c.object_uid(object)), c.version(object) })
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

	it("goes with its last reference", function()
		local before = c.live()
		local object = c.object { name = "a" }
		c.object_ref(object)
		assert.equal(before + 1, c.live()) -- which let go of the first one
		c.object_unref(object)
		assert.equal(before, c.live())
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
