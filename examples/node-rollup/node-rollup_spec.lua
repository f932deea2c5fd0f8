local k8s = require "perilune"
local manifests = require "support.manifests"
local sample = require "support.sample"
local testing = require "perilune.testing"

local FOLDER = "examples/node-rollup"

describe("examples/node-rollup", function()
	local function node(name)
		return { apiVersion = "v1", kind = "Node", metadata = { name = name } }
	end

	-- One that goes at once when it is deleted, as no kubelet is there to end it.
	local function pod(world, name, on)
		return {
			apiVersion = "v1", kind = "Pod", metadata = { namespace = world:name "shop", name = name },
			spec = { nodeName = on, terminationGracePeriodSeconds = 0, containers = { { name = "web", image = "web" } } },
		}
	end

	-- The kubelet's part. It knows of no other conditions than its own, and writes them over all that are there.
	local function tell(world, object, ready, phase)
		world:patch_status(object, { status = { phase = phase, conditions = { { type = "Ready", status = ready } } } })
	end

	local function condition(world, word)
		return k8s.conditions.get(world:get(node(world:name(word))), "PodsReady")
	end

	local function rollup(world, word)
		local found = condition(world, word) or {}
		return ("%s: %s"):format(found.status, found.message)
	end

	sample.tell(it, {
		folder = FOLDER,
		steps = {
			{
				"each node has its condition, beside the kubelet's",
				act = function(world)
					world:namespace "shop"
					for _, word in ipairs { "full", "empty" } do
						local made = node(world:name(word))
						world:create(made)
						tell(world, made, "True")
					end
					world:create(pod(world, "a", world:name "full"))
					world:create(pod(world, "b", world:name "full"))
					world:create(pod(world, "nowhere"))
				end,
				holds = function(world)
					assert.equal("False: 0 of 2 pods are ready", rollup(world, "full"))
					assert.equal("True: 0 of 0 pods are ready", rollup(world, "empty"))
					return true
				end,
			},
			{
				"it counts those that are ready",
				act = function(world)
					tell(world, pod(world, "a"), "True", "Running")
					tell(world, pod(world, "b"), "True", "Running")
				end,
				holds = function(world)
					return rollup(world, "full") == "True: 2 of 2 pods are ready"
				end,
			},
			{
				"one that has ended does not count, and a new one does",
				act = function(world)
					tell(world, pod(world, "b"), "False", "Succeeded")
					world:create(pod(world, "c", world:name "empty"))
				end,
				holds = function(world)
					assert.equal("True: 1 of 1 pods are ready", rollup(world, "full"))
					assert.equal("False: 0 of 1 pods are ready", rollup(world, "empty"))
					return true
				end,
			},
			{
				"one that is deleted does not count, and a condition that was lost comes back",
				act = function(world)
					world:delete(pod(world, "a"))
					world:delete(pod(world, "c"))
					tell(world, node(world:name "empty"), "False")
				end,
				holds = function(world)
					assert.equal("True: 0 of 0 pods are ready", rollup(world, "full"))
					assert.equal("True: 0 of 0 pods are ready", rollup(world, "empty"))
					local own = world:get(node(world:name "empty"))
					assert.equal("False", k8s.conditions.get(own, "Ready").status)
					return true
				end,
			},
			{
				"it owns nothing else of the status",
				act = function() end,
				holds = function(world)
					local owned = {}
					for _, entry in ipairs(world:get(node(world:name "full")).metadata.managedFields) do
						if entry.manager == "perilune/node-rollup/node-rollup" then
							owned[#owned + 1] = ("%s %s"):format(entry.operation, entry.subresource)
							assert.same({ ["f:conditions"] = entry.fieldsV1["f:status"]["f:conditions"] }, entry.fieldsV1["f:status"])
							local key = next(entry.fieldsV1["f:status"]["f:conditions"])
							assert.equal('k:{"type":"PodsReady"}', key)
							assert.is_nil(next(entry.fieldsV1["f:status"]["f:conditions"], key))
						end
					end
					assert.same({ "Apply status" }, owned)
					return true
				end,
			},
		},
	})

	it("passes over a node that goes meanwhile, and tries again what fails otherwise", function()
		local cluster = testing.cluster { quiet = true }
		local gone = cluster:fault { verb = "patch", name = "n1", action = "status", code = 404, reason = "NotFound" }
		local broken = cluster:fault { verb = "patch", name = "n2", action = "status", code = 500, reason = "InternalError" }
		assert(cluster:create(node "n1"))
		assert(cluster:create(node "n2"))
		cluster:load(FOLDER)
		cluster:advance(10)
		assert.same({ 1, 1 }, { gone.fired, broken.fired })
		local errors = cluster:logs { level = "error" }
		assert.same({ 1, "n2" }, { #errors, errors[1].name })
		assert.is_true(k8s.conditions.is_true(assert(cluster:get(node "n2")), "PodsReady"))
	end)

	it("has a role that is bound to its service account", function()
		manifests.check_binding(manifests.read(FOLDER .. "/manifests/rbac.yaml"))
	end)
end)
