local c = require "support.cache_units"
local ffi = c.ffi

local LABELS = {
	'{"app":"web"}', '{"app":"db","tier":"back"}', '{}', "null", '{"app":null}', '{"app":5}', '{"app":{"web":"web"}}', '["app"]', '"app"', "7",
	'{"\\u0061pp":"web"}', '{"app":"\\u0077eb"}', '{"app":"db","app":"web"}', '{"app":"web","app":"db"}', '{"app":"web","\\u0061pp":"db"}',
	'{"app":"web","app":null}', '{ "app" : "web" ,\n"tier":"" }', '{"app":""}', '{"example.com/app":"web","tier":"front"}',
}
local SELECTORS = {
	"", "app", "!app", "app=web", "app!=web", "app in (web,db)", "app notin (web,db)", "app=", "app=web,tier", "tier=back", "!tier,app==db",
	"example.com/app=web", "app notin (x),tier in (front,back)", "web", "app=5",
}

-- Members of metadata in front of and behind its labels, and a second metadata in front of the one that counts.
local function random_text(i)
	local labels = LABELS[math.random(#LABELS)]
	local metadata = ('"name":"n%d","uid":"u%d"'):format(i, i)
	local choice = math.random(8)
	if choice == 1 then
		return ('{"metadata":{%s},"spec":{"labels":%s}}'):format(metadata, labels)
	elseif choice == 2 then
		return ('{"metadata":{"labels":%s,%s,"labels":%s}}'):format(LABELS[math.random(#LABELS)], metadata, labels)
	elseif choice == 3 then
		return ('{"metadata":{"labels":{"app":"web"}},"metadata":{%s,"\\u006cabels":%s}}'):format(metadata, labels)
	elseif choice == 4 then
		return ('{"metadata":{%s,"labels":{"app":"own-%d"}}}'):format(metadata, i)
	end
	return ('{"kind":"X", "metadata" : {"labels" :%s, %s},"spec":{}}'):format(labels, metadata)
end

local function by_opening(selector, text)
	local meta = ffi.new "struct json_meta"
	assert.equal(0, c.json_meta(c.slice(text), meta))
	return c.selector_matches(selector, meta.labels)
end

describe("a selection", function()
	local live, scratch

	before_each(function()
		live = c.live()
		scratch = ffi.new "struct buf[2]"
	end)

	after_each(function()
		c.buf_fini(scratch[0])
		c.buf_fini(scratch[1])
		assert.equal(live, c.live())
	end)

	local function make(count)
		local texts, objects, lengths = {}, {}, ffi.new("size_t[?]", count)
		for i = 1, count do
			texts[i] = random_text(i)
			lengths[i - 1] = #texts[i]
			objects[i] = assert(c.object_of(texts[i]))
		end
		local dictionary = c.dictionary_new(0, table.concat(texts), lengths, count)
		for i = 1, count, 2 do
			c.object_pack(objects[i], dictionary, scratch)
		end
		c.dictionary_unref(dictionary)
		return texts, objects
	end

	-- The number that are selected, of all selectors.
	local function compare(texts, objects, seed)
		local selected = 0
		for _, text in ipairs(SELECTORS) do
			local selection, selector = c.selection_new(text, nil), c.selector_new(text, nil)
			for i, object in ipairs(objects) do
				local has = c.selection_has(selection, object)
				assert(has == by_opening(selector, texts[i]), ("%s: %s of %s"):format(seed, text, texts[i]))
				selected = selected + (has and 1 or 0)
			end
			c.selection_free(selection)
			c.selector_free(selector)
		end
		return selected
	end

	it("has the objects that the selector matches, packed or raw", function()
		local seed = c.seed()
		local texts, objects = make(800)
		local selected = compare(texts, objects, seed)
		assert.is_true(selected > #objects and selected < #objects * (#SELECTORS - 1))
	end)

	it("has the same where sets are not held", function()
		local seed = c.seed()
		for i = 1, 4000 do
			c.object { name = "filler-" .. i, labels = { app = "filler-" .. i, filler = ("x"):rep(100) } }
		end
		local texts, objects = make(400)
		local unknown = 0
		for _, object in ipairs(objects) do
			unknown = unknown + (c.object_labels(object) == 0 and 1 or 0)
		end
		assert.is_true(unknown > 20)
		compare(texts, objects, seed)
	end)

	it("is refused with a selector that is none", function()
		local err = c.err()
		assert.is_true(c.selection_new("a in", err) == nil)
		assert.matches("expected '('", c.message(err), 1, true)
	end)
end)
