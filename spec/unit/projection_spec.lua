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
		_, message = project({ drop = { "spec" }, keep = { "data" } }, "{}")
		assert.matches("exclude each other", message)
	end)

	it("refuses to drop what says which object this is, however it is written, and only that", function()
		for _, path in ipairs {
			"metadata", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.resourceVersion",
			"['metadata']", "['metadata'].name", "metadata['name']", '["metadata"]["uid"]', "metadata['resource\\Version']",
		} do
			local _, message = project({ drop = { "metadata.labels", path } }, "{}")
			assert.equal(('path "%s" can\'t be dropped: it says which object this is'):format(path), message)
		end
		for _, path in ipairs { "name", "spec.name", "metadata.names", "['metadata.name']", "metadata.name.x", "spec.metadata.name" } do
			assert.is_string((project({ drop = { path } }, '{"metadata":{"name":"a"}}')))
		end
	end)

	-- The object that projection_object makes of an item, and the metadata of its bytes.
	local function make(options, item)
		local projection, err, out = ffi.new "struct projection", c.err(), c.buf()
		local drop, keep = options.drop or {}, options.keep
		assert.equal(0, c.projection_init(projection, strings(drop), #drop, keep and strings(keep), keep and #keep or 0,
			options.metadata_only or false, err), c.message(err))
		local slice, of_item, of_made = c.slice(item), ffi.new "struct json_meta", ffi.new "struct json_meta"
		local api_version, plain_kind = c.alloc_string "v1", c.alloc_string "ConfigMap"
		local resource = ffi.new("struct cache_resource", { api_version = api_version, kind = plain_kind })
		local outline = c.outline_of(slice)
		assert.equal(0, c.json_meta(slice, of_item))
		local object = c.projection_object(projection, resource, outline, of_item, out, err)
		assert(object ~= nil, c.message(err))
		c.hold(object)
		c.object_unref(object)
		c.projection_fini(projection)
		c.alloc_free(api_version)
		c.alloc_free(plain_kind)
		assert.equal(0, c.json_meta(c.object_open(object, nil), of_made))
		assert.equal("a", ffi.string(c.object_name(object)))
		return object, of_made
	end

	local function labels_of(object)
		return (c.text(c.labels_bytes(c.object_labels(object))))
	end

	it("makes objects that know which labels are left", function()
		local item = '{"kind":"ConfigMap","metadata":{"name":"a","labels":{"x":"y","z":"1"},"managedFields":[]},"data":{"labels":{"d":"e"}}}'
		local all = '{"x":"y","z":"1"}'
		for _, case in ipairs {
			{ all, {} }, { all, { drop = { "metadata.managedFields", "data", "labels", "metadata.label" } } }, { all, { metadata_only = true } },
			{ nil, { drop = { "data", "metadata.labels" } } }, { '{"z":"1"}', { drop = { "metadata.labels.x" } } },
			{ nil, { keep = { "data" } } }, { all, { keep = { "metadata" } } }, { '{"x":"y"}', { keep = { "metadata.labels.x" } } },
		} do
			assert.equal(case[1], labels_of((make(case[2], item))))
		end
	end)

	it("makes objects that know whether their deletion is left", function()
		local item = '{"kind":"ConfigMap","metadata":{"name":"a","deletionTimestamp":"2020-01-01T00:00:00Z"},"data":{}}'
		for i, case in ipairs {
			{ true, {} }, { true, { drop = { "metadata.managedFields", "deletionTimestamp" } } }, { true, { metadata_only = true } },
			{ false, { drop = { "metadata.deletionTimestamp" } } }, { false, { drop = { "['metadata']['deletionTimestamp']" } } },
			{ false, { keep = { "data" } } }, { true, { keep = { "metadata" } } }, { true, { keep = { "metadata.deletionTimestamp" } } },
		} do
			assert.equal(case[1], c.object_is_ending((make(case[2], item))), i)
		end
	end)

	it("makes objects that know this of their bytes, whatever the item repeats", function()
		local seed = c.seed()
		local some = {
			'"labels":{"a":"b"}', '"labels":null', '"labels":7', '"\\u006cabels":{"a":"c","a":"d"}', '"labels":{ }', '"managedFields":[]',
			'"deletionTimestamp":"t"', '"deletionTimestamp":null', '"\\u0064eletionTimestamp":"u"',
		}
		local paths = {
			"metadata.managedFields", "metadata.labels", "metadata.labels.a", "data", "spec.labels", "metadata.deletionTimestamp",
			"metadata['deletionTimestamp'].x",
		}
		for _ = 1, 4000 do
			local members = { '"data":{"labels":{}}' }
			for i = 1, math.random(2) do
				local inner = { '"name":"a"' }
				for at = 1, math.random(0, 3) do
					inner[at + 1] = some[math.random(#some)]
				end
				members[i + 1] = '"metadata":{' .. table.concat(inner, ",") .. "}"
			end
			local item = "{" .. table.concat(members, ",") .. "}"
			local chosen = { paths[math.random(#paths)], paths[math.random(#paths)] }
			local options = { metadata_only = math.random(3) == 1 }
			if math.random(2) == 1 then
				options.drop = chosen
			elseif not options.metadata_only then
				options.keep = chosen
			end
			local object, meta = make(options, item)
			assert(labels_of(object) == c.text(meta.labels), seed .. ": " .. item)
			assert(c.object_is_ending(object) == (meta.deletion_timestamp.data ~= nil), seed .. ": " .. item)
			c.live()
		end
	end)
end)
