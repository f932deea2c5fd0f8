-- The bytes of a watch as single events, however they are cut.
local cjson = require "cjson"
local kube_units = require "support.kube_units"

local function event(type, object)
	return cjson.encode { type = type, object = object }
end

local function pod(name)
	return { kind = "Pod", metadata = { name = name, annotations = { odd = 'a "quoted" {brace} [bracket] \\ back\\\\slash ä€😀' } } }
end

describe("the frames of a watch", function()
	local units

	setup(function()
		units = kube_units.start()
	end)

	teardown(function()
		units:finish()
	end)

	local function frames(bytes, sizes, limit)
		return units:order("frame", { bytes = bytes, sizes = sizes or "", limit = limit or 0 })
	end

	local function names(events)
		local list = {}
		for i, one in ipairs(events) do
			list[i] = one.event == "frame" and one.type .. " " .. cjson.decode(one.object).metadata.name or one.event
		end
		return list
	end

	local stream = event("ADDED", pod "a") .. "\n" .. event("MODIFIED", pod "b") .. "\n" .. event("DELETED", pod "c") .. "\n"
	local expected = { "added a", "modified b", "deleted c", "framed" }

	it("come one by one, in order, whole", function()
		local events = frames(stream)
		assert.same(expected, names(events))
		assert.same(pod "a", cjson.decode(events[1].object))
	end)

	it("are the same wherever the bytes are cut", function()
		for size = 1, #stream do
			assert.same(expected, names(frames(stream, size .. ",100000")), "cut at " .. size)
		end
		for _, sizes in ipairs { "1", "2", "3", "7", "64" } do
			assert.same(expected, names(frames(stream, sizes)))
		end
	end)

	it("are the same for random cuts", function()
		local seed = os.time()
		math.randomseed(seed)
		for _ = 1, 200 do
			local sizes = {}
			for i = 1, 20 do
				sizes[i] = math.random(1, 60)
			end
			assert.same(expected, names(frames(stream, table.concat(sizes, ","))), "seed " .. seed .. ": " .. table.concat(sizes, ","))
		end
	end)

	it("may stand on one line, or on many", function()
		local together = event("ADDED", pod "a") .. event("ADDED", pod "b")
		assert.same({ "added a", "added b", "framed" }, names(frames(together)))
		local spaced = '\r\n\t {\n "object" :\n{"metadata":{"name":"x"}} ,\n "type" : "ADDED"\n}\n\n'
		for _, sizes in ipairs { "", "1", "5" } do
			assert.same({ "added x", "framed" }, names(frames(spaced, sizes)))
		end
	end)

	it("have all the types that Kubernetes knows, and name the others", function()
		local types = { ADDED = "added", MODIFIED = "modified", DELETED = "deleted", BOOKMARK = "bookmark", ERROR = "error" }
		for given, name in pairs(types) do
			assert.equal(name, frames(event(given, {}))[1].type)
		end
		local other = frames(event("RENAMED", {}))[1]
		assert.same({ "unknown", '"RENAMED"' }, { other.type, other.type_text })
		assert.equal("unknown", frames(event("added", {}))[1].type)
	end)

	local malformed = {
		{ "an array", "[1]", "byte 0: expected '{'" },
		{ "a word", "  hello", "byte 2: expected '{'" },
		{ "no type", '{"object":{}}', "has no type" },
		{ "a type that is no text", '{"type":1,"object":{}}', "has no type" },
		{ "no object", '{"type":"ADDED"}', "has no object" },
		{ "an object that is none", '{"type":"ADDED","object":[]}', "has no object" },
		{ "broken JSON", '{"type":"ADDED","object":{"a":tru}}', "byte " },
		{ "invalid UTF-8", '{"type":"ADDED","object":{"a":"\xff"}}', "UTF-8" },
		{ "wrong brackets", '{"type":"ADDED","object":{]}', "byte " },
	}
	for _, case in ipairs(malformed) do
		it("end in an error for " .. case[1] .. ", behind the good ones", function()
			local good = event("ADDED", pod "a") .. "\n"
			for _, sizes in ipairs { "", "1", "10" } do
				local events = frames(good .. case[2] .. "\n" .. good, sizes)
				assert.same("added a", names(events)[1])
				assert.equal("err", events[2].event)
				local message = events[2].message:gsub("byte (%d+)", function(at)
					return "byte " .. tonumber(at) - #good
				end)
				assert.truthy(message:find(case[3], 1, true), message)
				assert.equal(2, #events)
			end
		end)
	end

	it("that are cut off at the end are noticed", function()
		for size = 1, #stream - 2 do
			local events = frames(stream:sub(1, size))
			local at_boundary = stream:sub(size, size) == "\n" or stream:sub(size + 1, size + 1) == "\n"
			assert.equal(at_boundary and "framed" or "err", events[#events].event, size)
		end
		assert.truthy(frames('{"type":')[1].message:find("ended inside an event, at byte 8", 1, true))
		assert.equal("framed", frames(" \n")[1].event)
	end)

	it("larger than the limit are refused, with the size that is allowed", function()
		local frame = event("ADDED", { data = ("x"):rep(1000) })
		for _, sizes in ipairs { "", "1", "100" } do
			local events = frames(frame, sizes, 500)
			assert.same({ "err", "TooLarge" }, { events[1].event, events[1].reason })
			assert.truthy(events[1].message:find("larger than 500 bytes", 1, true))
			assert.equal("frame", frames(frame, sizes, #frame)[1].event)
		end
	end)

	-- 2 MiB in pieces of 16 bytes: scanning again from the start of the event for each would be 10^11 bytes.
	it("cost work in proportion to their bytes", function()
		local frame = event("ADDED", { data = ("x"):rep(2 * 1024 * 1024) })
		assert.equal("frame", frames(frame, "16")[1].event)
	end)
end)
