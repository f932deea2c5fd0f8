-- k8s.equal: whether two values mean the same as JSON.
local k8s = require "perilune"

local function decode(text)
	return (k8s.json.decode(text))
end

local function misused(f, pattern)
	local ok, err = pcall(f)
	assert.is_false(ok)
	assert.matches(pattern, err)
end

describe("k8s.equal", function()
	it("looks at what is inside", function()
		assert.is_true(k8s.equal({ a = { 1, { b = "x" } } }, { a = { 1, { b = "x" } } }))
		assert.is_false(k8s.equal({ a = { 1, { b = "x" } } }, { a = { 1, { b = "y" } } }))
		assert.is_false(k8s.equal({ a = 1 }, { a = 1, b = 2 }))
		assert.is_false(k8s.equal({ a = 1, b = 2 }, { a = 1 }))
		assert.is_false(k8s.equal({ 1, 2 }, { 1, 2, 3 }))
		assert.is_false(k8s.equal({ a = 1 }, "a"))
		assert.is_false(k8s.equal("1", 1))
	end)

	it("takes null for null alone, and absent for something else", function()
		assert.is_true(k8s.equal({ a = k8s.null }, decode '{"a":null}'))
		assert.is_false(k8s.equal({ a = k8s.null }, {}))
		assert.is_false(k8s.equal(k8s.null, nil))
		assert.is_false(k8s.equal(k8s.null, false))
		assert.is_true(k8s.equal(nil, nil))
	end)

	it("tells an empty array from an empty object", function()
		assert.is_false(k8s.equal(k8s.array {}, {}))
		assert.is_true(k8s.equal(k8s.array {}, decode "[]"))
		assert.is_true(k8s.equal(k8s.object {}, {}))
		assert.is_true(k8s.equal(k8s.array { 1 }, { 1 }))
		assert.is_false(k8s.equal(k8s.object { "a" }, { "a" }))
	end)

	it("compares numbers by their value, however large", function()
		assert.is_true(k8s.equal(decode "9007199254740993", decode "9007199254740993"))
		assert.is_false(k8s.equal(decode "9007199254740993", decode "9007199254740995"))
		assert.is_false(k8s.equal(decode "9007199254740993", 9007199254740992))
		assert.is_true(k8s.equal(5LL, 5))
		assert.is_true(k8s.equal(0, -0))
		assert.is_true(k8s.equal(0LL, -0))
		assert.is_false(k8s.equal(5LL, 5.5))
		assert.is_false(k8s.equal(-1LL, 18446744073709551615ULL))
		assert.is_false(k8s.equal(5LL, "5"))
		assert.is_false(k8s.equal(-9223372036854775807LL - 1, 2 ^ 63))
		assert.is_false(k8s.equal(0 / 0, 0 / 0))
	end)

	it("compares quantities by their value", function()
		assert.is_true(k8s.equal({ a = k8s.quantity "1" }, { a = k8s.quantity "1000m" }))
		assert.is_false(k8s.equal(k8s.quantity "1", {}))
	end)

	it("refuses what contains itself", function()
		local a, b = {}, {}
		a.a, b.a = a, b
		misused(function()
			k8s.equal(a, b)
		end, "equal_spec.lua:%d+: .*contains itself")
	end)
end)
