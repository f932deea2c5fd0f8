-- default-netpol in the sandbox: what is not told in the story of default-netpol_spec.lua.
local testing = require "perilune.testing"

describe("examples/default-netpol in the sandbox", function()
	local cluster

	local function namespace(name)
		return { apiVersion = "v1", kind = "Namespace", metadata = { name = name } }
	end

	local function policy(where)
		return { apiVersion = "networking.k8s.io/v1", kind = "NetworkPolicy", metadata = { namespace = where, name = "default-netpol" } }
	end

	local function applied(where)
		return #cluster:requests { verb = "patch", kind = "NetworkPolicy", namespace = where }
	end

	before_each(function()
		cluster = testing.cluster { quiet = true }
		assert(cluster:create(namespace "shop"))
		cluster:load "examples/default-netpol"
		cluster:settle()
	end)

	it("makes no request for what is right", function()
		assert.equal(1, applied "shop")
		for i = 1, 5 do
			assert(cluster:patch(namespace "shop", { metadata = { labels = { turn = tostring(i) } } }))
			cluster:settle()
		end
		assert.equal(1, applied "shop")
	end)

	it("leaves what others add to a policy's metadata", function()
		assert(cluster:patch(policy "shop", { metadata = { annotations = { ["example.com/note"] = "seen" } } }))
		cluster:settle()
		assert.equal(1, applied "shop")
		assert(cluster:patch(policy "shop", { spec = { policyTypes = { "Ingress", "Egress" } } }))
		cluster:settle()
		local found = assert(cluster:get(policy "shop"))
		assert.same({ "Ingress" }, found.spec.policyTypes)
		assert.equal("seen", found.metadata.annotations["example.com/note"])
	end)

	it("leaves other policies of the namespace alone", function()
		local other = policy "shop"
		other.metadata.name, other.spec = "web", { podSelector = {}, policyTypes = { "Egress" } }
		local made = assert(cluster:create(other))
		cluster:advance(3600)
		assert.equal(made.metadata.resourceVersion, cluster:get(other).metadata.resourceVersion)
	end)

	it("tries again what was refused", function()
		cluster:fault { verb = "patch", namespace = "late", action = "status", code = 500, times = 3 }
		assert(cluster:create(namespace "late"))
		cluster:advance(60)
		assert.truthy(cluster:get(policy "late"))
	end)
end)
