local k8s = require "perilune"
local testing = require "perilune.testing"
local files = require "support.files"

describe("cluster:rules()", function()
	local cluster
	local folder = files.folder()

	before_each(function()
		cluster = testing.cluster()
		assert(cluster:create { apiVersion = "v1", kind = "Namespace", metadata = { name = "shop" } })
	end)

	local function load(body)
		cluster:load(files.write(folder .. "/robot.lua", ([[
			local k8s = require "perilune"
			local map = { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "shop", name = "settings" } }
			local web = { apiVersion = "apps/v1", kind = "Deployment", namespace = "shop", name = "web" }
			k8s.on_synced(function() %s end)
		]]):format(body)))
		cluster:settle()
		return cluster:rules()
	end

	it("is what requests needed, whether or not they came to something", function()
		assert.same({
			{ apiGroups = { "" }, resources = { "configmaps" }, verbs = { "get", "create", "patch" } },
			{ apiGroups = { "apps" }, resources = { "deployments/scale" }, verbs = { "patch" } },
		}, load "k8s.get(map) k8s.apply(map) k8s.scale(web, 2) k8s.apply(map)")
		assert(cluster:delete { apiVersion = "v1", kind = "ConfigMap", namespace = "shop", name = "settings" }) -- a spec's own calls need none
		assert.equal(2, #cluster:rules())
	end)

	it("lets what watches list too, and is what k8s.needs takes", function()
		assert.same({}, load "")
		cluster:load "examples/default-netpol"
		cluster:settle()
		local rules = cluster:rules()
		assert.same({
			{ apiGroups = { "" }, resources = { "namespaces" }, verbs = { "list", "watch" } },
			{ apiGroups = { "networking.k8s.io" }, resources = { "networkpolicies" }, verbs = { "list", "watch", "create", "patch" } },
		}, rules)
		k8s.needs(rules)
	end)
end)
