-- What the API server sends, decoded and encoded again, means the same; and so does an update of it.
local k8s = require "perilune"
local cluster = require "support.cluster"
local json_text = require "support.json_text"
local json_tree = require "support.json_tree"

local function get(path)
	local status, text = cluster.raw("GET", path)
	assert.equal(200, status, path)
	return text
end

local function same(before, after, what)
	local difference = json_tree.difference(json_tree.read(before), json_tree.read(after))
	assert(not difference, difference and what .. ": " .. difference)
end

local function comes_back(path)
	local text = get(path)
	same(text, k8s.json.encode(assert(k8s.json.decode(text))), path)
end

describe("the API server's own JSON comes back equal in meaning", function()
	setup(cluster.need)

	it("all of discovery", function()
		local paths = { "/api", "/apis", "/api/v1", "/version" }
		for _, group in ipairs(k8s.json.decode(get "/apis").groups) do
			for _, version in ipairs(group.versions) do
				paths[#paths + 1] = "/apis/" .. version.groupVersion
			end
		end
		assert.is_true(#paths > 20)
		for _, path in ipairs(paths) do
			comes_back(path)
		end
	end)

	it("the OpenAPI documents", function()
		comes_back "/openapi/v2"
		comes_back "/openapi/v3"
		comes_back "/openapi/v3/api/v1"
	end)
end)

describe("an object through get, Lua and update", function()
	local TOP = { '"empty":{}', '"none":[]', '"null":null', '"least":-9223372036854775808', '"most":9223372036854775807' }

	-- A spec of random JSON; names that the API server would read as its own are not at its top.
	local function random_spec()
		local members = { unpack(TOP) }
		for i = 1, 4 do
			members[#members + 1] = ('"member%d":%s'):format(i, json_text.value())
		end
		return "{" .. table.concat(members, ",") .. "}"
	end

	local function specs_by_name(path)
		local specs = {}
		for _, item in ipairs(json_tree.read(get(path)).o.items.a) do
			specs[item.o.metadata.o.name.s] = item.o.spec
		end
		return specs
	end

	it("comes back equal, 200 times", function()
		cluster.need()
		local seed = os.time()
		math.randomseed(seed)
		local api_version, path = cluster.define()
		local namespace = cluster.namespace()
		path = path .. "/namespaces/" .. namespace .. "/widgets"
		local requests = {}
		for i = 1, 200 do
			requests[i] = { "POST", path, ('{"apiVersion":"%s","kind":"Widget","metadata":{"name":"w%d"},"spec":%s}')
				:format(api_version, i, random_spec()) }
		end
		for i, answer in ipairs(cluster.send(requests)) do
			assert.equal(201, answer.status, ("seed %d, object %d"):format(seed, i))
		end
		local before = specs_by_name(path)
		for i = 1, 200 do
			local object = assert(k8s.get { apiVersion = api_version, kind = "Widget", namespace = namespace, name = "w" .. i })
			object.metadata.annotations = { touched = "yes" }
			local updated = assert(k8s.update(object))
			assert.not_equal(object.metadata.resourceVersion, updated.metadata.resourceVersion)
		end
		local after = specs_by_name(path)
		for i = 1, 200 do
			local difference = json_tree.difference(before["w" .. i], after["w" .. i])
			assert(not difference, ("seed %d, object %d: %s"):format(seed, i, tostring(difference)))
		end
	end)
end)
