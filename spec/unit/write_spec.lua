-- What the answer to a write says of its object.
local c = require "support.cache_units"
local cjson = require "cjson"
local ffi = c.ffi

local OUTCOMES = { [0] = "nothing", "put", "gone" }

-- The texts of a resource live as long as it.
local texts = {}

local function text(value)
	texts[value] = texts[value] or c.copy(value .. "\0")
	return ffi.cast("char *", texts[value])
end

local function resource(api_version, kind, namespaced)
	return ffi.new("struct cache_resource", { api_version = text(api_version), kind = text(kind), namespaced = namespaced })
end

local MAPS, NAMESPACES = resource("v1", "ConfigMap", true), resource("v1", "Namespace", false)

-- "outcome key uid" of a write to shop/a, or what more says.
local function read(method, answer, more)
	more = more or {}
	local json = c.slice(type(answer) == "string" and answer or cjson.encode(answer))
	local write, result = ffi.new "struct write", ffi.new "struct write_result"
	write.resource = more.resource or MAPS
	write.method, write.answer = method, json
	write.namespace, write.name = "shop", more.name or "a"
	if more.nameless then
		write.name = nil
	end
	c.write_read(write, result)
	local found = OUTCOMES[result.outcome]
	if result.outcome > 0 then
		found = ("%s %s %s"):format(found, c.text(result.key), c.text(result.uid))
	end
	c.write_result_fini(result)
	return found
end

local function map(metadata)
	local object = { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "shop", name = "a", uid = "A", resourceVersion = "5" } }
	for key, value in pairs(metadata or {}) do
		object.metadata[key] = value
	end
	return object
end

local function status(details)
	return { apiVersion = "v1", kind = "Status", metadata = {}, status = "Success", details = details }
end

local ENDING = "2030-01-01T00:00:00Z"

describe("the answer to a write", function()
	it("is the object", function()
		for _, method in ipairs { "POST", "PUT", "PATCH" } do
			assert.equal("put shop/a A", read(method, map()))
		end
		assert.equal("put shop/a-x7 A", read("POST", map { name = "a-x7" }, { nameless = true }))
		assert.equal("nothing", read("GET", map()))
	end)

	it("to a delete is the object as it was last, or a Status with its uid", function()
		assert.equal("gone shop/a A", read("DELETE", map()))
		assert.equal("gone shop/a A", read("DELETE", status { name = "a", uid = "A" }))
		assert.equal("nothing", read("DELETE", status { name = "a" }))
		assert.equal("nothing", read("DELETE", status()))
		assert.equal("nothing", read("DELETE", status { uid = "A" }, { nameless = true }))
		assert.equal("nothing", read("POST", status { name = "a", uid = "A" }))
	end)

	it("says whether something keeps the object that is being deleted", function()
		for _, method in ipairs { "DELETE", "PUT", "PATCH" } do
			assert.equal("put shop/a A", read(method, map { deletionTimestamp = ENDING, deletionGracePeriodSeconds = 30 }))
			assert.equal("put shop/a A", read(method, map { deletionTimestamp = ENDING, finalizers = { "example.com/x" } }))
			assert.equal("gone shop/a A", read(method, map { deletionTimestamp = ENDING, deletionGracePeriodSeconds = 0 }))
			assert.equal("gone shop/a A", read(method, map { deletionTimestamp = ENDING }))
		end
	end)

	it("of a namespace has finalizers of two kinds", function()
		local function namespace(spec)
			return { apiVersion = "v1", kind = "Namespace", metadata = { name = "a", uid = "A", deletionTimestamp = ENDING }, spec = spec }
		end
		local more = { resource = NAMESPACES }
		assert.equal("put a A", read("DELETE", namespace { finalizers = { "kubernetes" } }, more))
		assert.equal("gone a A", read("PUT", namespace { other = 1 }, more))
	end)

	it("counts for nothing where it is of another object or kind, or of none", function()
		local scale = map()
		scale.apiVersion, scale.kind = "autoscaling/v1", "Scale"
		local other_version = map()
		other_version.apiVersion = "v2"
		for _, answer in ipairs { scale, other_version, map { name = "b" }, map { namespace = "farm" }, map { uid = cjson.null }, "[]", "null", "{}",
			'{"apiVersion":"v1","kind":"ConfigMap","metadata":7}', '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":3,"uid":"A"}}' } do
			assert.equal("nothing", read("PUT", answer))
			assert.equal("nothing", read("DELETE", answer))
		end
		assert.equal("nothing", read("PUT", map(), { resource = NAMESPACES }))
	end)
end)
