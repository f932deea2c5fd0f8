-- Paths of objects: a name never reaches another object than the one of that name.
local kube_units = require "support.kube_units"

describe("the path of a resource", function()
	local units

	setup(function()
		units = kube_units.start()
	end)

	teardown(function()
		units:finish()
	end)

	local function path(fields)
		fields.group = fields.group or ""
		fields.version = fields.version or "v1"
		fields.plural = fields.plural or "pods"
		return units:one("path", fields)
	end

	it("is what the API server expects", function()
		local cases = {
			{ {}, "/api/v1/pods" },
			{ { namespace = "shop" }, "/api/v1/namespaces/shop/pods" },
			{ { namespace = "shop", name = "web-1" }, "/api/v1/namespaces/shop/pods/web-1" },
			{ { namespace = "shop", name = "web-1", subresource = "status" }, "/api/v1/namespaces/shop/pods/web-1/status" },
			{ { plural = "nodes", name = "n1" }, "/api/v1/nodes/n1" },
			{ { group = "apps", plural = "deployments", namespace = "" }, "/apis/apps/v1/deployments" },
			{ { group = "rbac.authorization.k8s.io", plural = "clusterroles", name = "system:node" },
				"/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode" },
		}
		for _, case in ipairs(cases) do
			assert.equal(case[2], path(case[1]).path)
		end
	end)

	it("encodes whatever a name holds", function()
		assert.equal("/api/v1/pods/a%20b%3Fc%23d%25e", path({ name = "a b?c#d%e" }).path)
		assert.equal("/api/v1/pods/%C3%A4%0A%09", path({ name = "ä\n\t" }).path)
		assert.equal("/api/v1/namespaces/a%3Fb/pods", path({ namespace = "a?b" }).path)
	end)

	-- The server decodes once and then splits at slashes; proxies may resolve dots. So after one decoding there must be
	-- the same number of segments, and none of them empty or dots.
	it("keeps one segment a name, whatever the name, also for who decodes it", function()
		local seed = os.time()
		math.randomseed(seed)
		local alphabet = { ".", "..", "/", "%", "2F", "2e", "\\", "a", "?", "#", ";", "\0x", " " }
		local names = { "", ".", "..", "/", "a/b", "../x", "a/status", "%2F", "%2e%2e", "./.", "//" }
		for _ = 1, 300 do
			local name = ""
			for _ = 1, math.random(5) do
				name = name .. alphabet[math.random(#alphabet)]
			end
			names[#names + 1] = name:gsub("%z", "")
		end
		for _, name in ipairs(names) do
			local got = path({ namespace = "shop", name = name }).path
			local decoded = got:gsub("%%(%x%x)", function(digits)
				return string.char(tonumber(digits, 16))
			end)
			local segments = {}
			for segment in decoded:gmatch "/([^/]*)" do
				segments[#segments + 1] = segment
				assert(segment ~= "" and segment ~= "." and segment ~= "..", ("%q, seed %d: %s"):format(name, seed, got))
			end
			assert.equal(6, #segments, ("%q, seed %d: %s"):format(name, seed, got))
			assert.is_nil(got:find "[^%w/%%%-%._~]")
		end
	end)

	it("is named as kubectl does", function()
		assert.equal("pods", path({}).name)
		assert.equal("deployments.apps", path({ group = "apps", plural = "deployments" }).name)
	end)
end)

describe("an apiVersion", function()
	local units

	setup(function()
		units = kube_units.start()
	end)

	teardown(function()
		units:finish()
	end)

	it("is a version, or a group and a version", function()
		local split = units:one("split", { api_version = "v1" })
		assert.same({ "", "v1" }, { split.group, split.version })
		split = units:one("split", { api_version = "networking.k8s.io/v1beta1" })
		assert.same({ "networking.k8s.io", "v1beta1" }, { split.group, split.version })
	end)

	it("is refused where it is no apiVersion", function()
		local bad = { "", "/", "apps/", "/v1", "a/b/c", ".", "..", "../v1", "apps/..", "a b/v1", "v1?x", "v1#", "a%2Fb/v1", "ä/v1", "v1\n",
			("g"):rep(254) .. "/v1", ("v"):rep(64), "v1/Pod", "apps/v1/Deployment", "V1", "Apps/v1", "v1/pods", "v1beta1/x" }
		for _, text in ipairs(bad) do
			local err = units:one("split", { api_version = text })
			assert.equal("err", err.event, text)
			assert.truthy(err.message:find("is no apiVersion", 1, true))
		end
	end)
end)

describe("a query", function()
	it("is encoded so that values stay values", function()
		local units = kube_units.start()
		local events = units:ordered("query", {
			"a", "labelSelector", "b", "app=web,tier in (a, b)", "a", "fieldSelector", "b", "spec.nodeName!=", "a", "x", "b", "1&y=2+ü",
		})
		assert.equal("labelSelector=app%3Dweb%2Ctier%20in%20%28a%2C%20b%29&fieldSelector=spec.nodeName%21%3D&x=1%26y%3D2%2B%C3%BC",
			events[1].query)
		units:finish()
	end)
end)
