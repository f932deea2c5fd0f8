-- Whether two JSON values mean the same, and the part of one that another asks for.
local c = require "support.c"
local seed = require "support.seed"

c.cdef [[
	bool compare_same(struct json_slice a, struct json_slice b);
	bool compare_holds(struct json_slice whole, struct json_slice part);
	int compare_cut(struct json_slice whole, struct json_slice shape, struct buf *out, bool *lacking);
]]
local ffi = c.ffi

local function same(a, b)
	return ffi.C.compare_same(c.slice(a), c.slice(b))
end

local function holds(whole, part)
	return ffi.C.compare_holds(c.slice(whole), c.slice(part))
end

local function cut(whole, shape)
	local out = c.buf()
	local lacking = ffi.new "bool[1]"
	local result = ffi.C.compare_cut(c.slice(whole), c.slice(shape), out, lacking)
	return result == 0 and c.text(out) or nil, lacking[0]
end

-- Random values as trees: an object is { o = { { key, value }, … } }, an array { a = { … } }, a scalar the texts that say it.
local SCALARS = {
	{ "null" }, { "true" }, { "false" }, { "0", "-0", "0.0", "0e5" }, { "1", "1.0", "10e-1" }, { "-7" }, { "1500", "1.5e3" },
	{ "9007199254740993" }, { "9007199254740992" }, { '""' }, { '"a"', '"\\u0061"' }, { '"é"', '"\\u00e9"' }, { '"\\\\"', '"\\u005c"' }, { '"1"' },
}
local KEYS = { { '"k"', '"\\u006b"' }, { '"key"' }, { '"é"', '"\\u00e9"' }, { '""' }, { '"a/b"', '"a\\/b"' } }

local function random_tree(depth)
	local roll = math.random(6)
	if depth == 0 or roll <= 3 then
		return SCALARS[math.random(#SCALARS)]
	end
	local members = {}
	for _, key in ipairs(KEYS) do
		if math.random(2) == 1 then
			members[#members + 1] = roll <= 5 and { key, random_tree(depth - 1) } or random_tree(depth - 1)
		end
	end
	return roll <= 5 and { o = members } or { a = members }
end

local function pick(list)
	return list[math.random(#list)]
end

-- One of the texts that mean the tree.
local function text_of(tree)
	if tree.o then
		local texts = {}
		for _, member in ipairs(tree.o) do
			table.insert(texts, math.random(#texts + 1), pick(member[1]) .. pick { ":", " : " } .. text_of(member[2]))
		end
		return "{" .. table.concat(texts, pick { ",", ", " }) .. "}"
	elseif tree.a then
		local texts = {}
		for i, element in ipairs(tree.a) do
			texts[i] = text_of(element)
		end
		return "[" .. table.concat(texts, pick { ",", "\n, " }) .. "]"
	end
	return pick(tree)
end

-- A copy with one place that means something else.
local function changed(tree)
	local members = tree.o or tree.a
	if not members then
		local other
		repeat
			other = pick(SCALARS)
		until other ~= tree
		return other
	end
	local copy = {}
	for i, member in ipairs(members) do
		copy[i] = member
	end
	if #copy == 0 then
		copy[1] = tree.o and { KEYS[1], { "1" } } or { "1" }
	elseif math.random(3) == 1 then
		table.remove(copy, math.random(#copy))
	else
		local i = math.random(#copy)
		copy[i] = tree.o and { copy[i][1], changed(copy[i][2]) } or changed(copy[i])
	end
	return tree.o and { o = copy } or { a = copy }
end

describe("two JSON values", function()
	it("are the same however they are written, and not when one place differs", function()
		local say = seed()
		for _ = 1, 3000 do
			local tree = random_tree(4)
			local a, b, other = text_of(tree), text_of(tree), text_of(changed(tree))
			assert(same(a, b), ("%s: %s should be %s"):format(say, a, b))
			assert(not same(a, other) and not same(other, a), ("%s: %s should not be %s"):format(say, a, other))
		end
	end)

	it("of many members in another order cost no square", function()
		local members = {}
		for i = 1, 50000 do
			members[i] = ('"key-%d":%d'):format(i, i)
		end
		local whole = "{" .. table.concat(members, ",") .. "}"
		local start = os.clock()
		for i = 1, 25000 do
			members[i], members[50001 - i] = members[50001 - i], members[i]
		end
		local backwards = "{" .. table.concat(members, ",") .. "}"
		assert.is_true(same(whole, backwards))
		assert.is_true(holds(whole, backwards))
		assert.equal(whole, (cut(whole, backwards)))
		assert.is_nil(cut(whole, backwards:gsub("{", '{"other":1,')))
		assert.is_true(os.clock() - start < 5, os.clock() - start)
	end)

	it("are never the same when they nest too deep to tell", function()
		local deep = ("["):rep(600) .. "1" .. ("]"):rep(600)
		assert.is_false(same(deep, deep:gsub("1", "1.0")))
		local objects = ('{"a":'):rep(600) .. "1" .. ("}"):rep(600)
		assert.is_false(holds(objects, objects))
		assert.is_nil(cut(objects, objects))
		local bearable = ('{"a":'):rep(510) .. "1" .. ("}"):rep(510)
		assert.is_true(holds(bearable, bearable))
	end)
end)

describe("the part of a value", function()
	it("is in it, whatever else is there, and not when one place of the part differs", function()
		local say = seed()
		for _ = 1, 3000 do
			local whole = random_tree(4)
			if whole.o then
				local part = {}
				for _, member in ipairs(whole.o) do
					part[#part + 1] = math.random(2) == 1 and member or nil
				end
				local text, part_text = text_of(whole), text_of { o = part }
				assert(holds(text, part_text), ("%s: %s should hold %s"):format(say, text, part_text))
				local shape = cut(text, part_text)
				assert(same(shape, part_text), ("%s: %s cut to %s is %s"):format(say, text, part_text, shape))
			end
		end
	end)

	it("goes into objects, and takes arrays as one", function()
		local whole = '{"a":{"b":1,"c":[{"d":1,"e":2}]},"f":"x"}'
		assert.is_true(holds(whole, '{"a":{"b":1}}'))
		assert.is_true(holds(whole, '{"a":{}}'))
		assert.is_false(holds(whole, '{"a":{"g":1}}'))
		assert.is_false(holds(whole, '{"a":{"c":[{"d":1}]}}'))
		assert.is_false(holds(whole, '{"f":{}}'))
		assert.same({ '{"a":{"c":[{"d":1,"e":2}]},"f":"x"}', false }, { cut(whole, '{"f":7,"a":{"c":[]}}') })
		assert.same({ '{"a":{}}', false }, { cut(whole, '{"a":{}}') })
		assert.equal("7", cut("7", "{}"))
	end)

	it("knows what is empty, and so may be left out", function()
		for _, empty in ipairs { "null", "false", "0", "0.0", '""', "[]", "{}", '{"a":{"b":false,"c":0}}' } do
			assert.same({ '{"a":1,"x":null}', true }, { cut('{"a":1,"b":2}', ('{"x":%s,"a":2}'):format(empty)) })
		end
		for _, value in ipairs { "true", "1", '"a"', "[0]", '{"a":{"b":false,"c":1}}' } do
			assert.is_nil(cut('{"a":1}', ('{"x":%s,"a":2}'):format(value)), value)
		end
		assert.is_true(holds('{"a":1}', '{"a":1,"x":null}'))
		assert.is_true(holds('{"a":1,"x":null}', '{"a":1,"x":null}'))
		assert.is_false(holds('{"a":1,"x":false}', '{"a":1,"x":null}'))
	end)
end)
