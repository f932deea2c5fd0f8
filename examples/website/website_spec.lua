local cluster = require "support.cluster"
local k8s = require "perilune"
local manifests = require "support.manifests"
local sample = require "support.sample"
local testing = require "perilune.testing"

local FOLDER = "examples/website"
local API = { Website = "example.com/v1", Deployment = "apps/v1", Service = "v1", ConfigMap = "v1" }
local OWNED = { "Deployment", "Service", "ConfigMap" }

local function reference(kind, namespace)
	return { apiVersion = API[kind], kind = kind, namespace = namespace, name = "hello" }
end

local function website(namespace, spec)
	return { apiVersion = "example.com/v1", kind = "Website", metadata = { namespace = namespace, name = "hello" }, spec = spec }
end

-- What the Deployment's own controller would report when so many pods are ready.
local function status_of(deployment, ready)
	return { status = {
		observedGeneration = deployment.metadata.generation, replicas = deployment.spec.replicas,
		updatedReplicas = deployment.spec.replicas, readyReplicas = ready, availableReplicas = ready,
	} }
end

describe("examples/website", function()
	local function get(world, kind)
		return world:get(reference(kind, world:name "shop"))
	end

	local function ready_of(world)
		local site = get(world, "Website")
		local ready = k8s.conditions.get(site, "Ready")
		assert.equal(site.metadata.generation, site.status.observedGeneration)
		assert.equal(site.metadata.generation, ready.observedGeneration)
		return ready.status, ready.message, site.status
	end

	local function roll_out(world, ready)
		local deployment = get(world, "Deployment")
		world:patch_status(deployment, status_of(deployment, ready))
	end

	local function scale(world, replicas)
		local site = reference("Website", world:name "shop")
		if world.is_real then
			local path = ("/apis/example.com/v1/namespaces/%s/websites/hello/scale"):format(site.namespace)
			assert.equal(200, (cluster.curl("PATCH", path, { spec = { replicas = replicas } })))
		else
			assert(world.cluster:scale(site, replicas))
		end
	end

	sample.tell(it, {
		folder = FOLDER,
		steps = {
			{
				"a Website gets its three objects, and owns them",
				act = function(world)
					world:create(website(world:namespace "shop", { html = "<p>Hello", replicas = 2 }))
				end,
				holds = function(world)
					local uid = get(world, "Website").metadata.uid
					for _, kind in ipairs(OWNED) do
						local owners = get(world, kind).metadata.ownerReferences
						assert.same({ uid, true, 1 }, { owners[1].uid, owners[1].controller, #owners })
					end
					assert.equal("<p>Hello", get(world, "ConfigMap").data["index.html"])
					assert.equal(80, get(world, "Service").spec.ports[1].port)
					assert.equal(2, get(world, "Deployment").spec.replicas)
					local ready, message = ready_of(world)
					assert.same({ "False", "0 of 2 replicas are up to date, 0 ready" }, { ready, message })
					return true
				end,
			},
			{
				"it reports how its Deployment does",
				act = function(world)
					roll_out(world, 2)
				end,
				holds = function(world)
					local ready, message, status = ready_of(world)
					assert.same({ "True", "2 of 2 replicas are up to date, 2 ready" }, { ready, message })
					assert.same({ 2, 2, "app.kubernetes.io/name=hello" }, { status.replicas, status.readyReplicas, status.selector })
					return true
				end,
			},
			{
				"it is scaled as a Deployment is",
				act = function(world)
					scale(world, 3)
				end,
				holds = function(world)
					return get(world, "Deployment").spec.replicas == 3 and ready_of(world) == "False"
				end,
			},
			{
				"it is ready again when the new one is",
				act = function(world)
					roll_out(world, 3)
				end,
				holds = function(world)
					return ready_of(world) == "True"
				end,
			},
			{
				"what others change or delete comes back",
				act = function(world)
					world:delete(get(world, "Service"))
					world:patch(get(world, "ConfigMap"), { data = { ["index.html"] = "gone" } })
					world:patch(get(world, "Deployment"), { metadata = { labels = { ["app.kubernetes.io/managed-by"] = k8s.null } }, spec = { replicas = 7 } })
				end,
				holds = function(world)
					assert.equal("<p>Hello", get(world, "ConfigMap").data["index.html"])
					local deployment = get(world, "Deployment")
					assert.same({ 3, "website" }, { deployment.spec.replicas, deployment.metadata.labels["app.kubernetes.io/managed-by"] })
					return get(world, "Service") ~= nil
				end,
			},
			{
				"new HTML is served",
				act = function(world)
					world:patch(get(world, "Website"), { spec = { html = "<p>Goodbye" } })
				end,
				holds = function(world)
					ready_of(world)
					return get(world, "ConfigMap").data["index.html"] == "<p>Goodbye"
				end,
			},
			{
				"all goes with it",
				act = function(world)
					world:delete(get(world, "Website"))
				end,
				holds = function(world)
					for _, kind in ipairs { "Website", unpack(OWNED) } do
						assert.is_nil(get(world, kind))
					end
					return true
				end,
			},
		},
	})

	it("has a role that is bound to its service account", function()
		manifests.check_binding(manifests.read(FOLDER .. "/manifests/rbac.yaml"))
	end)
end)

describe("examples/website in the sandbox", function()
	local sandbox

	before_each(function()
		sandbox = testing.cluster { manifests = { FOLDER .. "/manifests/crd.yaml", FOLDER .. "/manifests/demo.yaml" } }
		sandbox:load(FOLDER)
		sandbox:settle()
	end)

	local function get(kind)
		return sandbox:get(reference(kind, "website-demo"))
	end

	local function ready()
		return k8s.conditions.is_true(assert(get "Website"), "Ready")
	end

	it("makes of its demo object what it says", function()
		assert.truthy(get("ConfigMap").data["index.html"]:find("<h1>Hello</h1>", 1, true))
		assert.equal(2, get("Deployment").spec.replicas)
	end)

	it("does not believe a Deployment that speaks of an older spec", function()
		local deployment = get "Deployment"
		assert(sandbox.status.patch(deployment, status_of(deployment, 2)))
		sandbox:settle()
		assert.is_true(ready())
		assert(sandbox:patch(get "Website", { spec = { replicas = 1 } }))
		sandbox:settle()
		assert.is_false(ready())
		assert(sandbox.status.patch(deployment, { status = { replicas = 1, updatedReplicas = 1, readyReplicas = 1, availableReplicas = 1 } }))
		sandbox:settle()
		assert.is_false(ready())
		assert(sandbox.status.patch(deployment, status_of(get "Deployment", 1)))
		sandbox:settle()
		assert.is_true(ready())
	end)

	it("says why a Deployment can't go on", function()
		local deployment = get "Deployment"
		local status = status_of(deployment, 0)
		status.status.conditions = { { type = "Progressing", status = "False", reason = "ProgressDeadlineExceeded", message = "no image" } }
		assert(sandbox.status.patch(deployment, status))
		sandbox:settle()
		local told = k8s.conditions.get(get "Website", "Ready")
		assert.same({ "False", "ProgressDeadlineExceeded", "no image" }, { told.status, told.reason, told.message })
	end)

	it("makes nothing again while its objects go before it", function()
		assert(sandbox:delete(get "Website", { propagation = "Foreground" }))
		sandbox:advance(60)
		for _, kind in ipairs { "Website", unpack(OWNED) } do
			assert.is_nil((get(kind)))
		end
	end)

	it("is not upset by the end of its namespace, of which its own objects may tell first", function()
		local keeper = reference("ConfigMap", "website-demo")
		keeper.metadata = { namespace = "website-demo", name = "keeper", finalizers = { "example.com/keeper" } }
		keeper.name = nil
		assert(sandbox:create(keeper))
		local late = sandbox:fault { verb = "watch", resource = "websites", action = "silence" }
		sandbox:restart()
		sandbox:advance(60)
		assert.equal(1, late.fired)
		assert(sandbox:delete { apiVersion = "v1", kind = "Namespace", name = "website-demo" })
		sandbox:advance(10)
		assert.truthy(sandbox:get { apiVersion = "v1", kind = "Namespace", name = "website-demo" })
		assert.is_nil((get "Website"))
		assert.same({}, sandbox:logs { level = "error" })
	end)

	it("takes one replica for a Website that says nothing of it, and none for 0", function()
		for replicas, name in pairs { [0] = "none", [1] = "one" } do
			local site = website("website-demo", { html = "", replicas = replicas == 0 and 0 or nil })
			site.metadata.name = name
			assert(sandbox:create(site))
			sandbox:settle()
			local deployment = reference("Deployment", "website-demo")
			deployment.name = name
			assert.equal(replicas, sandbox:get(deployment).spec.replicas)
		end
	end)

	it("writes nothing when all is right, however often its objects tell of it", function()
		local before = #sandbox:requests()
		assert(sandbox:patch(get "Deployment", { metadata = { annotations = { a = "b" } } }))
		assert(sandbox:patch(get "Service", { metadata = { annotations = { a = "b" } } }))
		sandbox:advance(3600)
		for i, request in ipairs(sandbox:requests()) do
			assert.is_true(i <= before or request.verb == "watch" or request.verb == "list", request.verb)
		end
	end)
end)
