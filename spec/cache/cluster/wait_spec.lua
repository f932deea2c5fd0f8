-- Informers whose cause to wait goes away: rights that are granted, kinds that are made; and versions that are compacted.
local cache = require "support.cache"
local own_cluster = require "support.own_cluster"
local process = require "support.process"

describe("an informer of a real API server", function()
	local own, driver, namespace

	before_each(function()
		own = own_cluster.start()
		namespace = own:namespace()
	end)

	after_each(function()
		driver:finish()
	end)

	local function user(name)
		local code, stdout = process.run { "scripts/cluster", "user", name, env = own.env }
		assert.equal(0, code)
		return stdout:match "^(.-)\n"
	end

	local function grant(name, verbs)
		local rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/" .. namespace
		own:create(rbac .. "/roles", { metadata = { name = name }, rules = { { apiGroups = { "" }, resources = { "secrets" }, verbs = verbs } } })
		own:create(rbac .. "/rolebindings", { metadata = { name = name },
			roleRef = { apiGroup = "rbac.authorization.k8s.io", kind = "Role", name = name },
			subjects = { { apiGroup = "rbac.authorization.k8s.io", kind = "User", name = name } } })
	end

	-- Passes over the informer's waits until its report is accepted.
	local function until_so(message, accept)
		local deadline = process.now() + 60
		while true do
			local report = driver:ask("report", { id = "i" })
			if accept(report) then
				return
			end
			assert(process.now() < deadline, message)
			if report.wait then
				driver:advance(report.wait)
			end
			pcall(driver.event, driver, "change", "i", 0.2)
		end
	end

	it("names the missing rule, and syncs soon after it is granted", function()
		driver = cache.start(user("eve"))
		driver:order("informer", { id = "i", apiVersion = "v1", kind = "Secret", namespaces = namespace })
		driver:order("barrier", { id = "g", informers = "i" })
		driver:order "start"
		local change = driver:change("i", "forbidden")
		assert.equal(403, change.status)
		assert.matches("eve", change.message)
		assert.matches("%(missing: list, watch on secrets in namespace " .. namespace:gsub("%-", "%%-") .. "%)$", change.message)
		grant("eve", { "list", "watch" })
		until_so("it does not sync", function(report)
			return report.state == "streaming"
		end)
		driver:event("gate_open", "g")
	end)

	local function crd()
		return { apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition", metadata = { name = "moons.spec.example.com" },
			spec = { group = "spec.example.com", scope = "Namespaced",
				names = { plural = "moons", singular = "moon", kind = "Moon", listKind = "MoonCollection" },
				versions = { { name = "v1", served = true, storage = true, schema = { openAPIV3Schema = { type = "object",
					["x-kubernetes-preserve-unknown-fields"] = true } } } } } }
	end

	it("waits for a kind that is not there yet, and tells deletes when it goes", function()
		local definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
		driver = cache.start(own.kubeconfig)
		driver:follow { apiVersion = "spec.example.com/v1", kind = "Moon" }
		local change = driver:change("i", "no such kind")
		assert.matches('no kind "Moon"', change.message)
		own:create(definitions, crd())
		until_so("it does not sync", function(report)
			return report.synced
		end)
		local moons = "/apis/spec.example.com/v1/namespaces/" .. namespace .. "/moons"
		own:create(moons, { apiVersion = "spec.example.com/v1", kind = "Moon", metadata = { name = "io" } })
		driver:event("add", "h")
		assert.equal("Moon", driver:ask("get", { id = "i", key = namespace .. "/io" }).object.kind)
		own:curl("DELETE", definitions .. "/moons.spec.example.com")
		driver:event("delete", "h")
		until_so("it does not notice that the kind is gone", function(report)
			return report.state:match "^no such kind"
		end)
		own:create(definitions, crd())
		until_so("it does not notice that the kind is back", function(report)
			return report.state == "streaming"
		end)
		own:create(moons, { apiVersion = "spec.example.com/v1", kind = "Moon", metadata = { name = "europa" } })
		driver:event("add", "h", function(event)
			return event.key == namespace .. "/europa"
		end)
		own:curl("DELETE", definitions .. "/moons.spec.example.com")
	end)

	it("lists again when its version was compacted while the server was down", function()
		local path = "/api/v1/namespaces/" .. namespace .. "/configmaps"
		driver = cache.start(own.kubeconfig)
		driver:follow { apiVersion = "v1", kind = "ConfigMap", namespaces = namespace }
		driver:event("synced", "h")
		own:create(path, { metadata = { name = "kept" } })
		own:create(path, { metadata = { name = "lost" } })
		driver:event("add", "h", function(event)
			return event.key == namespace .. "/lost"
		end)
		-- Nothing reads from here on, so what follows is a gap.
		driver.child:kill "STOP"
		own:curl("DELETE", path .. "/lost")
		own:create(path, { metadata = { name = "new" } })
		assert(own:run "compact")
		assert(own:run("stop-apiserver", "KILL"))
		assert(own:run "start-apiserver")
		driver.child:kill "CONT"
		driver:advance(60)
		driver:event("add", "h", 40, function(event)
			return event.key == namespace .. "/new"
		end)
		driver:event("delete", "h", 40, function(event)
			return event.key == namespace .. "/lost"
		end)
		local held = driver:store "i"
		assert.is_nil(held[namespace .. "/lost"])
		assert.truthy(held[namespace .. "/kept"])
		assert.truthy(held[namespace .. "/new"])
	end)
end)
