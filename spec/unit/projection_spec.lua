local c = require "support.cache_units"
local cjson = require "cjson"
local ffi = c.ffi

local function strings(texts)
	return ffi.new("const char *[?]", #texts + 1, texts)
end

-- What a projection makes of an item; nil and the message when it can't be made.
local function project(options, item, api_version, kind)
	local projection, err, out = ffi.new "struct projection", c.err(), c.buf()
	local drop, keep = options.drop or {}, options.keep
	if c.projection_init(projection, strings(drop), #drop, keep and strings(keep), keep and #keep or 0, options.metadata_only or false,
		err) ~= 0 then
		return nil, c.message(err)
	end
	local slice = c.slice(item)
	local outline = c.outline_of(slice)
	assert.equal(0, c.projection_apply(projection, api_version or "v1", kind or "ConfigMap", outline, out, err))
	-- The buffer is used again for the next item.
	assert.equal(0, c.projection_apply(projection, api_version or "v1", kind or "ConfigMap", outline, out, err))
	c.projection_fini(projection)
	assert.equal(0, c.json_validate(out.data, out.length, err), c.message(err))
	return c.text(out)
end

describe("projection", function()
	local live

	before_each(function()
		live = c.live()
	end)

	after_each(function()
		assert.equal(live, c.live())
	end)

	it("puts apiVersion and kind first, once", function()
		assert.equal('{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}', project({}, '{"metadata":{"name":"a"}}'))
		assert.equal('{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"}}',
			project({}, '{"kind":"PartialObjectMetadata","metadata":{"name":"a"},"apiVersion":"meta.k8s.io/v1"}', "apps/v1", "Deployment"))
		assert.equal('{"apiVersion":"v1","kind":"ConfigMap"}', project({}, "{}"))
		assert.equal('{"apiVersion":"v1","kind":"ConfigMap"}', project({}, '{ "kind" : "x" }'))
	end)

	it("drops paths and leaves the rest as it is", function()
		local item = '{"metadata":{"name":"a","managedFields":[{"x":1}],"labels":{}},"data":{"big":12345678901234567890, "e":[] }}'
		assert.same(cjson.decode '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{}},"data":{"e":[]}}',
			cjson.decode((project({ drop = { "metadata.managedFields", "data.big" } }, item))))
		assert.matches('"big":12345678901234567890', (project({ drop = { "metadata.managedFields" } }, item)), 1, true)
	end)

	it("keeps paths, and what the cache needs", function()
		local item = '{"kind":"ConfigMap","metadata":{"name":"a","namespace":"s","uid":"u","resourceVersion":"1","labels":{"x":"y"}},'
			.. '"data":{"a":"1","b":"2"}}'
		assert.same({ apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a", namespace = "s", uid = "u", resourceVersion = "1" },
			data = { b = "2" } }, cjson.decode((project({ keep = { "data.b" } }, item))))
	end)

	it("keeps the metadata of a server that sends whole objects where it was asked for partial ones", function()
		local whole = '{"metadata":{"name":"a","labels":{"x":"y"},"managedFields":[1]},"data":{"a":"1"}}'
		local partial = '{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","labels":{"x":"y"},"managedFields":[1]}}'
		for _, item in ipairs { whole, partial } do
			assert.same({ apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a", labels = { x = "y" } } },
				cjson.decode((project({ metadata_only = true, drop = { "metadata.managedFields" } }, item))))
		end
	end)

	it("refuses what is no path, and drop beside keep", function()
		local _, message = project({ drop = { "metadata.managedFields", "spec.[" } }, "{}")
		assert.matches('path "spec.["', message, 1, true)
		for _, option in ipairs { "keep", "drop" } do
			_, message = project({ [option] = { "metadata.labels", "spec.containers[*].name" } }, "{}")
			assert.matches("only keys", message)
		end
		for _, path in ipairs { "metadata", "metadata.name", "metadata.resourceVersion" } do
			_, message = project({ drop = { path } }, "{}")
			assert.matches("can't be dropped: it says which object this is", message, 1, true)
		end
		_, message = project({ drop = { "spec" }, keep = { "data" } }, "{}")
		assert.matches("exclude each other", message)
	end)
end)
