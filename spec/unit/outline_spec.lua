-- What is noted of an object's members while it is cut out of a list, against a walk over its bytes.
local c = require "support.c"
local json_text = require "support.json_text"
local ffi = c.ffi

-- Feeds a list of one item in chunks and gives the outline of the item to look.
local function outline(item, sizes, look)
	local err, failure = c.err(), nil
	local on_item = ffi.cast("split_fn", function(_, found)
		local ok, problem = pcall(look, found)
		failure = not ok and problem or nil
		return 0
	end)
	local text, at, turn = '{"items":[' .. item .. "]}", 1, 1
	local splitter = c.split_new(0, on_item, nil)
	while at <= #text do
		local chunk = text:sub(at, at + sizes[math.min(turn, #sizes)] - 1)
		assert.equal(0, c.split_feed(splitter, c.copy(chunk), #chunk, err), c.message(err))
		at, turn = at + #chunk, turn + 1
	end
	c.split_free(splitter)
	on_item:free()
	assert(not failure, failure)
end

-- The members as "key=value", those of noted members in brackets behind theirs.
local function noted(found)
	local iter, list = c.outline_iterate(found), {}
	while c.outline_next(iter) do
		list[#list + 1] = c.text(iter.key) .. "=" .. c.text(iter.value.bytes)
		if iter.value.base ~= nil then
			list[#list + 1] = noted(iter.value)
		end
	end
	return list
end

local function walked(bytes)
	local iter, list = c.json_iterate(bytes), {}
	while c.json_next(iter) do
		list[#list + 1] = c.text(iter.key) .. "=" .. c.text(iter.value)
	end
	return list
end

local function sieved(fn, object, texts)
	local paths, out = ffi.new("struct json_path *[?]", #texts), c.buf()
	for i, text in ipairs(texts) do
		paths[i - 1] = c.json_path_new(text, nil)
	end
	assert.equal(0, fn(object, paths, #texts, out))
	for i = 1, #texts do
		c.json_path_free(paths[i - 1])
	end
	return c.text(out)
end

local META = { "api_version", "kind", "metadata", "name", "namespace", "uid", "resource_version", "generation", "labels", "deletion_timestamp",
	"annotations" }
local PATHS = { { "metadata.managedFields" }, { "kind", "spec.a", "metadata.labels.a" }, { "metadata" } }

local function agrees(found)
	local by_notes, by_walk = ffi.new "struct json_meta", ffi.new "struct json_meta"
	local known = c.outline_meta(found, by_notes)
	assert.equal(c.json_meta(found.bytes, by_walk), known)
	for _, name in ipairs(META) do
		assert.equal(c.text(by_walk[name]), c.text(by_notes[name]), name)
	end
	local bare = c.outline_of(found.bytes)
	for _, paths in ipairs(PATHS) do
		assert.equal(sieved(c.outline_drop, bare, paths), sieved(c.outline_drop, found, paths))
		assert.equal(sieved(c.outline_keep, bare, paths), sieved(c.outline_keep, found, paths))
	end
end

describe("an outline", function()
	it("notes the members of an object and of its metadata, and no others", function()
		local item = '{ "a" : [ {"metadata":{}} ] ,"metadata":{"name":"x", "labels" : {"metadata":1} , "n":-1\n},"spec":{"metadata":{"b":2}},"e":{}}'
		local expected = {
			'"a"=[ {"metadata":{}} ]',
			'"metadata"={"name":"x", "labels" : {"metadata":1} , "n":-1\n}',
			{ '"name"="x"', '"labels"={"metadata":1}', '"n"=-1' },
			'"spec"={"metadata":{"b":2}}',
			'"e"={}',
		}
		for size = 1, #item do
			outline(item, { size }, function(found)
				assert.is_true(found.base ~= nil)
				assert.same(expected, noted(found))
			end)
		end
	end)

	it("takes metadata that is empty, comes twice or is none", function()
		for _, item in ipairs {
			'{"metadata":{}}', '{"metadata":{ }, "a":1}', '{"metadata":{"name":"a"},"metadata":{"uid":"b"}}', '{"metadata":null}',
			'{"metadata":[{"metadata":{}}]}', '{"metadata":"{","kind":{}}', '{"\\u006detadata":{"name":"a"}}', "{}", "[]", "[{}]", "1", '"{}"',
			'{"metadata":{"metadata":{"name":"deep"},"name":"a"}}', '{"metadata":{"name":"a"},"metadata":null}',
		} do
			for size = 1, 9 do
				outline(item, { size }, agrees)
			end
		end
	end)

	it("has no notes of an object with too many members, which is walked", function()
		local members = {}
		for i = 1, 100 do
			members[i] = ('"m%d":{"a":%d}'):format(i, i)
			local item = '{"kind":"A","metadata":{"name":"x","labels":{"a":"b"},' .. table.concat(members, ",") .. '},"spec":{"a":1}}'
			outline(item, { 1000 }, function(found)
				agrees(found)
				assert.equal(i + 5 <= 64, found.base ~= nil, i)
				assert.same(walked(found.bytes), (function()
					local list = {}
					for _, member in ipairs(noted(found)) do
						list[#list + 1] = type(member) == "string" and member or nil
					end
					return list
				end)())
			end)
		end
	end)

	it("agrees with a walk over random objects", function()
		local seed = c.seed()
		local keys = { '"metadata"', '"kind"', '"name"', '"labels"', '"managedFields"', '"spec"', '"a"', '"\\u0061"', '"apiVersion"', '"uid"' }
		local function object(depth)
			local members = {}
			for i = 1, math.random(0, 6) do
				local value = depth < 3 and math.random(2) == 1 and object(depth + 1) or json_text.value(4)
				members[i] = keys[math.random(#keys)] .. json_text.space() .. ":" .. json_text.space() .. value
			end
			return json_text.join("{", members, "}")
		end
		for _ = 1, 300 do
			local item = object(0)
			local ok, problem = pcall(outline, item, { math.random(40), math.random(40), math.random(200) }, agrees)
			assert.is_true(ok, seed .. ": " .. item .. ": " .. tostring(problem))
		end
	end)
end)
