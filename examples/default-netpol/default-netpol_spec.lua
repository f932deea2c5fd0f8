local cli = require "support.cli"
local k8s = require "perilune"
local manifests = require "support.manifests"
local sample = require "support.sample"

local function policy_in(world, word)
	return { apiVersion = "networking.k8s.io/v1", kind = "NetworkPolicy", namespace = world:name(word), name = "default-netpol" }
end

local function namespace(world, word)
	return { apiVersion = "v1", kind = "Namespace", name = world:name(word) }
end

-- Asserts that there is the policy as it should be, in the hands of the namespace that is there now.
local function check(world, word)
	local policy = assert(world:get(policy_in(world, word)), word .. " has no policy")
	assert.same({ podSelector = {}, policyTypes = { "Ingress" }, ingress = { { from = { { podSelector = {} } } } } }, policy.spec)
	assert.equal("default-netpol", policy.metadata.labels["app.kubernetes.io/managed-by"])
	assert.equal(1, #policy.metadata.ownerReferences)
	local owner = policy.metadata.ownerReferences[1]
	assert.equal(world:get(namespace(world, word)).metadata.uid, owner.uid)
	assert.is_true(owner.controller)
end

local function have_policies(...)
	local words = { ... }
	return function(world)
		for _, word in ipairs(words) do
			check(world, word)
		end
		return true
	end
end

describe("examples/default-netpol", function()
	sample.tell(it, {
		folder = "examples/default-netpol",
		setup = function(world)
			world.config.skip = "no-such," .. world:namespace "left-alone"
		end,
		steps = {
			{
				"a policy in each namespace",
				act = function(world)
					world:namespace "shop"
					world:namespace "bank"
				end,
				holds = have_policies("shop", "bank"),
			},
			{
				"a changed and a deleted policy",
				act = function(world)
					world:patch(policy_in(world, "shop"), { spec = { podSelector = { matchLabels = { app = "web" } }, ingress = { {} } } })
					world:delete(policy_in(world, "bank"))
				end,
				holds = have_policies("shop", "bank"),
			},
			{
				"one that lost its label or its owner, and a late namespace",
				act = function(world)
					world:patch(policy_in(world, "shop"), { metadata = { labels = { ["app.kubernetes.io/managed-by"] = "somebody" } } })
					world:patch(policy_in(world, "bank"), { metadata = { ownerReferences = k8s.array {} } })
					world:namespace "late"
				end,
				holds = have_policies("shop", "bank", "late"),
			},
			{
				"the end of a namespace, and none where none should be",
				act = function(world)
					world:delete(namespace(world, "bank"))
				end,
				holds = function(world)
					for _, name in ipairs { world:name "left-alone", "kube-system", "kube-public", "kube-node-lease" } do
						assert.same({}, world:list { apiVersion = "networking.k8s.io/v1", kind = "NetworkPolicy", namespace = name })
					end
					return have_policies("shop", "late")(world) and not world:get(namespace(world, "bank"))
				end,
			},
		},
	})

	it("has a role that is bound to its service account", function()
		manifests.check_binding(manifests.read "examples/default-netpol/manifests/rbac.yaml")
	end)

	it("loads without a cluster", function()
		local code, _, err = cli.run { "check", "examples/default-netpol", "--set", "skip=ingress,monitoring" }
		assert.equal(0, code, err)
	end)
end)
