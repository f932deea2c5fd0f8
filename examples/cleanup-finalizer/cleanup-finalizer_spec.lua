local cli = require "support.cli"
local k8s = require "perilune"
local manifests = require "support.manifests"
local sample = require "support.sample"
local testing = require "perilune.testing"

local FOLDER = "examples/cleanup-finalizer"
local FINALIZER = "example.com/cleanup-finalizer"

local function record(namespace, name, address)
	return {
		apiVersion = "example.com/v1", kind = "Record", metadata = { namespace = namespace, name = name },
		spec = address and { address = address },
	}
end

-- The service: entries by "namespace/name". As long as broken is set, it answers with that status and does nothing.
local function open_service()
	local service = { entries = {}, calls = {} }
	service.server = testing.http_server(function(request)
		local key = request.path:match "^/records/(.+)$"
		table.insert(service.calls, request.method .. " " .. key)
		if service.broken then
			return { status = service.broken }
		elseif request.method == "PUT" then
			service.entries[key] = k8s.json.decode(request.body).address
		elseif request.method == "DELETE" and service.entries[key] then
			service.entries[key] = nil
		else
			return { status = 404 }
		end
	end)
	return service
end

describe("examples/cleanup-finalizer", function()
	local service

	before_each(function()
		service = open_service()
	end)

	after_each(function()
		service.server:close()
	end)

	describe("", function()
		local function entry(world, name)
			return service.entries[world:name "shop" .. "/" .. name]
		end

		local function get(world, name)
			return world:get(record(world:name "shop", name))
		end

		-- The service has the address, and the Record says so of its latest spec.
		local function is_stored(world, name, address)
			local object = get(world, name)
			local ready = k8s.conditions.get(object, "Ready")
			assert.equal(address, entry(world, name))
			assert.same({ FINALIZER }, object.metadata.finalizers)
			assert.same({ "True", "Stored", object.metadata.generation }, { ready.status, ready.reason, ready.observedGeneration })
			return true
		end

		sample.tell(it, {
			folder = FOLDER,
			setup = function(world)
				world.config.service = service.server.url
			end,
			steps = {
				{
					"each Record gets its entry, and keeps a finalizer for it",
					act = function(world)
						local namespace = world:namespace "shop"
						for i, name in ipairs { "a", "b", "c" } do
							world:create(record(namespace, name, "192.0.2." .. i))
						end
					end,
					holds = function(world)
						return is_stored(world, "a", "192.0.2.1") and is_stored(world, "b", "192.0.2.2") and is_stored(world, "c", "192.0.2.3")
					end,
				},
				{
					"a changed one changes its entry",
					act = function(world)
						world:patch(record(world:name "shop", "a"), { spec = { address = "192.0.2.10" } })
					end,
					holds = function(world)
						return is_stored(world, "a", "192.0.2.10")
					end,
				},
				{
					"a deleted one takes its entry along",
					act = function(world)
						world:delete(record(world:name "shop", "b"))
						world:delete(record(world:name "shop", "c"))
					end,
					holds = function(world)
						return not get(world, "b") and not get(world, "c") and not entry(world, "b") and not entry(world, "c")
					end,
				},
				{
					"one that is made again has an entry again",
					act = function(world)
						world:create(record(world:name "shop", "c", "192.0.2.30"))
					end,
					holds = function(world)
						return is_stored(world, "c", "192.0.2.30")
					end,
				},
				{
					"in the end nothing is left",
					act = function(world)
						world:delete(record(world:name "shop", "a"))
						world:delete(record(world:name "shop", "c"))
					end,
					holds = function(world)
						return not get(world, "a") and not get(world, "c") and next(service.entries) == nil
					end,
				},
			},
		})
	end)

	describe("in the sandbox", function()
		local cluster, www

		before_each(function()
			cluster = testing.cluster { manifests = { FOLDER .. "/manifests/crd.yaml", FOLDER .. "/manifests/demo.yaml" }, quiet = true }
			www = record("cleanup-finalizer-demo", "www")
		end)

		local function run(config)
			config = config or {}
			config.service = service.server.url
			cluster:load(FOLDER, { config = config })
			cluster:settle()
		end

		local function ready()
			local condition = k8s.conditions.get(assert(cluster:get(www)), "Ready")
			return ("%s %s: %s"):format(condition.status, condition.reason, condition.message)
		end

		it("makes of its demo object what it says", function()
			run()
			assert.same({ ["cleanup-finalizer-demo/www"] = "192.0.2.10" }, service.entries)
			assert.equal("True Stored: the service answers 200", ready())
		end)

		it("says once that the service refuses, tries again and says when it does not any more", function()
			service.broken = 503
			run()
			assert.equal("False Refused: the service answers 503", ready())
			local written = #cluster:requests { verb = "update" }
			cluster:advance(60)
			assert.is_true(#service.calls > 5)
			assert.equal(written, #cluster:requests { verb = "update" })
			service.broken = nil
			cluster:advance(120)
			assert.equal("True Stored: the service answers 200", ready())
		end)

		it("says that the service can't be reached", function()
			service.server:close()
			run()
			assert.equal("False Unreachable: the service does not answer", ready())
			assert.matches("Connection", cluster:logs({ level = "error" })[1].error)
		end)

		it("keeps a deleted Record until the service has let go of the entry", function()
			run()
			service.broken = 500
			assert(cluster:delete(www))
			cluster:advance(30)
			assert.truthy(assert(cluster:get(www)).metadata.deletionTimestamp)
			service.broken = nil
			cluster:advance(60)
			assert.is_nil((cluster:get(www)))
			assert.same({}, service.entries)
		end)

		it("lets a Record go whose entry is not there", function()
			run()
			service.entries = {}
			assert(cluster:delete(www))
			cluster:settle()
			assert.is_nil((cluster:get(www)))
			assert.same({}, cluster:logs { level = "error" })
		end)

		it("puts what the service lost back, after the period", function()
			run { period = 60 }
			service.entries = {}
			cluster:advance(61)
			assert.same({ ["cleanup-finalizer-demo/www"] = "192.0.2.10" }, service.entries)
		end)

		it("asks the service nothing when its own status comes back", function()
			run()
			assert.same({ "PUT cleanup-finalizer-demo/www" }, service.calls)
			assert(cluster:patch(www, { metadata = { labels = { a = "b" } } }))
			cluster:settle()
			assert.equal(1, #service.calls)
		end)
	end)

	it("refuses a service that is no URL, and a period that is no number", function()
		for setting, message in pairs { ["service=names.example.com"] = "service must be a URL", ["period=soon"] = "period must be a number" } do
			local code, _, err = cli.run { "check", FOLDER, "--set", setting }
			assert.equal(1, code)
			assert.truthy(err:find(message, 1, true), err)
		end
	end)

	it("has a role that is bound to its service account", function()
		manifests.check_binding(manifests.read(FOLDER .. "/manifests/rbac.yaml"))
	end)
end)
