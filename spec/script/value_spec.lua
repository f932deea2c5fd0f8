-- JSON through Lua means the same afterwards. Judged by spec/support/json_tree.lua, which shares no code with the program.
local k8s = require "perilune"
local json_text = require "support.json_text"
local json_tree = require "support.json_tree"
local json = k8s.json

local function comes_back(text)
	local decoded, err = json.decode(text)
	assert(decoded ~= nil, err)
	local difference = json_tree.difference(json_tree.read(text), json_tree.read(json.encode(decoded)))
	assert(not difference, difference and difference .. " in " .. text)
end

-- Objects in each other, each with so many members before the next one, and as many elements in an array.
local function thicket(levels, width)
	local text = "1"
	for level = 1, levels do
		local members, elements = {}, {}
		for i = 1, width do
			members[i], elements[i] = ('"m%d":%d'):format(i, level), tostring(i)
		end
		members[width + 1] = ('"list":[%s]'):format(table.concat(elements, ","))
		members[width + 2] = '"next":' .. text
		text = "{" .. table.concat(members, ",") .. "}"
	end
	return text
end

describe("JSON comes back equal in meaning", function()
	local texts = {
		"{}", "[]", '{"a":[]}', '{"a":{}}', "[[],{}]", "null", '{"a":null,"b":[null]}', "true", '""',
		"9223372036854775807", "-9223372036854775808", "9007199254740993", "-9007199254740993", "1234567890123456", "0", "-0",
		"0.1", "1e21", "1.7976931348623157e308", "5e-324", "123456789.123456789",
		' \n{"a" : [ 1 , 2 ] }\r\n\t', '"\\u0000\\u001f\\ud83d\\ude00é😀\\"\\\\\\/"', '{"":1,"a.b/c":2,"1":3,"\\u00e9":4}',
		('["a"' .. (',"a"'):rep(3000) .. "]"), ("["):rep(500) .. ("]"):rep(500),
		thicket(1, 1000), thicket(500, 70), thicket(3, 64), thicket(3, 63), thicket(3, 128), thicket(3, 129),
	}
	for _, text in ipairs(texts) do
		it("such as " .. text:sub(1, 60), function()
			comes_back(text)
		end)
	end

	it("whatever it is", function()
		local seed = os.time()
		math.randomseed(seed)
		for i = 1, 2000 do
			local text = json_text.value()
			local ok, err = pcall(comes_back, text)
			assert(ok, ("seed %d, text %d: %s"):format(seed, i, tostring(err)))
		end
	end)

	it("while the collector runs at every chance", function()
		local pause, multiplier = collectgarbage("setpause", 0), collectgarbage("setstepmul", 1000000)
		local ok, err = pcall(function()
			for width = 1, 66, 65 do
				comes_back(thicket(2, width))
			end
		end)
		collectgarbage("setpause", pause)
		collectgarbage("setstepmul", multiplier)
		assert(ok, err)
	end)

	it("with the last of equal keys, however far they are from each other", function()
		for _, between in ipairs { 0, 1, 61, 62, 63, 64, 500 } do
			local members = { '"twice":1' }
			for i = 1, between do
				members[#members + 1] = ('"m%d":0'):format(i)
			end
			members[#members + 1] = '"twice":2'
			assert.equal(2, json.decode("{" .. table.concat(members, ",") .. "}").twice)
		end
	end)

	it("after a script has changed it", function()
		local object = json.decode '{"args":["a"],"labels":{"a":"b"}}'
		table.remove(object.args)
		object.labels.a = nil
		assert.same(json_tree.read '{"args":[],"labels":{}}', json_tree.read(json.encode(object)))
	end)
end)

describe("JSON of a script's own values", function()
	it("takes an empty table for an object, and an array when told so", function()
		assert.equal("{}", json.encode {})
		assert.equal("[]", json.encode(k8s.array {}))
		assert.equal('["a"]', json.encode { "a" })
		assert.equal("[null]", json.encode { k8s.null })
		assert.equal("null", json.encode(nil))
	end)

	it("takes an array in whatever order it was filled", function()
		local backwards, numbers = {}, {}
		for i = 40, 1, -1 do
			backwards[i] = i
			numbers[41 - i] = 41 - i
		end
		assert.equal("[" .. table.concat(numbers, ",") .. "]", json.encode(backwards))
		assert.equal('["a","b",["c"]]', json.encode { "a", [3] = { [1] = "c" }, [2] = "b" })
	end)

	it("refuses what JSON can't say, naming the place", function()
		local function refused(pattern, value)
			local ok, err = pcall(json.encode, value)
			assert.is_false(ok)
			assert.matches(pattern, err)
		end
		local loop = {}
		loop.again = loop
		refused("spec%.args%[2%]: a function can't be JSON", { spec = { args = { "a", print } } })
		refused("x: NaN and infinity", { x = 0 / 0 })
		refused("x: NaN and infinity", { x = math.huge })
		refused("x: a string that is no UTF%-8", { x = "\255" })
		refused("a table with both numbers and names", { 1, a = 2 })
		refused("an array with holes", { 1, nil, 3, nil, 5 })
		refused("x: an array with holes", { x = { [0] = 0, 1, 2 } })
		refused("an array with holes", { 1, 2, [2.5] = 3 })
		refused("x%[3%]: a function", { x = { [3] = print, [2] = 2, [1] = 1 } })
		refused("only strings can be the keys", { [2.5] = 1 })
		refused("nested deeper than 512, or a table that contains itself", loop)
		refused("a thread or userdata", { x = coroutine.create(print) })
	end)

	it("refuses text that is no JSON, with the place", function()
		for _, text in ipairs { "", "{", "[1,]", '{"a" 1}', "01", "1e999", '"\\ud800"', '"\255"', "nul", "[1] 2", "\239\187\191{}",
			("["):rep(513) .. ("]"):rep(513) } do
			local ok, value, err = pcall(json.decode, text)
			assert(not ok or (value == nil and type(err) == "string"), "taken: " .. text:sub(1, 20))
		end
	end)
end)

describe("YAML", function()
	it("becomes what kubectl would send", function()
		local object = k8s.yaml.decode "a: [1, '1', 1.5, yes, ~, 2030-01-01]\nb:\n  - |\n    text\n"
		assert.same({ 1, "1", 1.5, true, k8s.null, "2030-01-01" }, { unpack(object.a, 1, 6) })
		assert.equal("text\n", object.b[1])
	end)

	it("reads many documents, and back", function()
		local all = k8s.yaml.decode_all "a: 1\n---\n---\nb: [x]\n"
		assert.equal(2, #all)
		assert.same({ "x" }, { unpack(k8s.yaml.decode(k8s.yaml.encode(all[2])).b) })
		local nothing, err = k8s.yaml.decode "a: 1\n---\nb: 2\n"
		assert.is_nil(nothing)
		assert.matches("more than one document", err)
	end)

	it("names line and column of what is wrong", function()
		local nothing, err = k8s.yaml.decode "a: 1\nb: [\n"
		assert.is_nil(nothing)
		assert.matches("line %d", err)
	end)
end)

describe("what would grow without end is refused", function()
	-- A table of a few entries that is gigabytes when written out.
	local function bush()
		local t = {}
		for _ = 1, 40 do
			t = { t, t }
		end
		return t
	end

	for name, encode in pairs { json = json.encode, yaml = k8s.yaml.encode } do
		it("by k8s." .. name .. ".encode #soak", function()
			local ok, err = pcall(encode, bush())
			assert.is_false(ok)
			assert.matches("^spec/.*:%d+: k8s%." .. name .. "%.encode: .*larger than 64 MiB", err)
		end)
	end

	it("by k8s.json.encode, of long texts", function()
		local list, text = {}, ("x"):rep(1024 * 1024)
		for i = 1, 65 do
			list[i] = text
		end
		local ok, err = pcall(json.encode, list)
		assert.is_false(ok)
		assert.matches("^spec/.*:%d+: k8s%.json%.encode: .*larger than 64 MiB", err)
	end)

	it("by k8s.yaml.decode_all, over all documents together", function()
		local lines = { "a: &a [" .. ("x,"):rep(500) .. "]" }
		for i = 1, 2 do
			lines[#lines + 1] = ("%s: &%s [%s]"):format(("bc"):sub(i, i), ("bc"):sub(i, i), ("*%s,"):format(("ab"):sub(i, i)):rep(100))
		end
		local document = table.concat(lines, "\n")
		local nothing, err = k8s.yaml.decode_all((document .. "\n---\n"):rep(4))
		assert.is_nil(nothing)
		assert.matches("the documents are larger than 64 MiB", err)
	end)

	it("and a number that no Lua number holds", function()
		local nothing, err = json.decode "[1e999]"
		assert.is_nil(nothing)
		assert.matches("^JSON: the number 1e999 is out of range", err)
	end)
end)
