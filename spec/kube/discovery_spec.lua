-- Look-ups of kinds, against a server that answers what the spec says.
local cjson = require "cjson"
local files = require "support.files"
local kube = require "support.kube"
local stub = require "support.stub"

local JSON = { ["content-type"] = "application/json" }

local function resource(name, kind, more)
	local made = { name = name, kind = kind, namespaced = true, verbs = { "get", "list", "watch" } }
	for key, value in pairs(more or {}) do
		made[key] = value
	end
	return made
end

local function list(...)
	return cjson.encode { kind = "APIResourceList", apiVersion = "v1", groupVersion = "example.com/v1", resources = { ... } }
end

describe("discovery", function()
	local server, driver

	before_each(function()
		server = stub.listen()
		driver = kube.start { kubeconfig = kube.write_config(files.folder() .. "/config", { server = server.url }, {}) }
	end)

	after_each(function()
		driver:finish()
		server:close()
	end)

	local function begin(id, kind, plural)
		driver:order("find", { id = id, api_version = "example.com/v1", kind = kind, plural = plural })
	end

	-- The two questions for near names.
	local function answer_hints(body)
		for _ = 1, 2 do
			local request = server:accept()
			assert(request.target == "/api" or request.target == "/apis", request.target)
			request:reply(200, JSON, body or "{}")
		end
	end

	it("asks once for look-ups that wait together, and not again for what is known", function()
		begin("a", "Widget")
		begin("b", nil, "widgets")
		begin("c", "Gadget")
		local request = server:accept()
		assert.equal("/apis/example.com/v1", request.target)
		request:reply(200, JSON, list(resource("widgets", "Widget"), resource("widgets/status", "Widget"), resource("gadgets", "Gadget", { namespaced = false })))
		assert.equal("widgets", driver:event("found", "a").plural)
		assert.equal("Widget", driver:event("found", "b").kind)
		assert.is_false(driver:event("found", "c").namespaced)
		begin("d", "Widget") -- an unanswered request would keep it waiting
		assert.equal("widgets.example.com", driver:event("found", "d").name)
		driver:order("known", { api_version = "example.com/v1", kind = "Widget" })
		assert.equal("widgets", driver:event("known").plural)
		driver:order("forget", { api_version = "example.com/v1" })
		driver:order("known", { api_version = "example.com/v1", kind = "Widget" })
		assert.is_nil(driver:event("known").plural)
	end)

	it("asks again for what was not there", function()
		begin("a", "Widget")
		server:accept():reply(404, {}, "404 page not found")
		answer_hints()
		local found = driver:event("found", "a")
		assert.same({ "NoKind", 404 }, { found.err.reason, found.err.code })
		begin("b", "Widget")
		server:accept():reply(200, JSON, list(resource("widgets", "Widget")))
		assert.equal("widgets", driver:event("found", "b").plural)
	end)

	it("prefers the resource that can be watched where two share a kind", function()
		begin("a", "Widget")
		server:accept():reply(200, JSON, list(resource("widgetreviews", "Widget", { verbs = { "create" } }), resource("widgets", "Widget")))
		assert.equal("widgets", driver:event("found", "a").plural)
	end)

	it("says why it could not be asked, which is not the same as absent", function()
		begin("a", "Widget")
		server:accept():reply(503, {}, "service unavailable")
		local found = driver:event("found", "a")
		assert.same({ "ServiceUnavailable", true }, { found.err.reason, found.err.retryable })
	end)

	it("answers without near names when the server does not give any", function()
		begin("a", "Widget")
		server:accept():reply(200, JSON, list(resource("gadgets", "Gadget")))
		for _ = 1, 2 do
			server:accept():reply(500, {}, "")
		end
		assert.equal('the server has no kind "Widget" in example.com/v1', driver:event("found", "a").err.message)
	end)

	it("refuses what is no apiVersion without asking", function()
		for _, text in ipairs { "", "a/b/c", "apps/", "/v1", "../v1", "a b/v1", "apps/v1?x" } do
			local found = driver:find { api_version = text, kind = "Widget" }
			assert.equal("BadRequest", found.err.reason)
			assert.truthy(found.err.message:find("is no apiVersion", 1, true))
		end
	end)

	it("can be given up at each stage", function()
		begin("a", "Widget")
		begin("b", "Widget")
		driver:order("cancel", { id = "a" })
		server:accept():reply(200, JSON, list(resource("gadgets", "Gadget")))
		local hint = server:accept()
		driver:order("cancel", { id = "b" })
		hint:reply(200, JSON, "{}")
		server:accept():reply(200, JSON, "{}")
		begin("c", "Gadget")
		assert.equal("gadgets", driver:event("found", "c").plural)
		assert.is_false(driver:has("found", "a") or driver:has("found", "b"))
	end)

	it("survives answers that are no resource list", function()
		for i, body in ipairs { "[]", "{}", '{"resources":{}}', '{"resources":[1,null,{"name":1,"kind":2},{"name":"","kind":"Widget"}]}' } do
			begin("x" .. i, "Widget")
			server:accept():reply(200, JSON, body)
			if i == 1 then
				answer_hints()
			end
			assert.equal("NoKind", driver:event("found", "x" .. i).err.reason)
		end
	end)
end)
