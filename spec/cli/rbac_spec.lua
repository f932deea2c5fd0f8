local cli = require "support.cli"
local files = require "support.files"
local k8s = require "perilune"
local manifests = require "support.manifests"

-- "ClusterRole apps/deployments patch", "Role shop /configmaps patch", with the names that the right is for: the rights of YAML
-- for kubectl, in order.
local function rights_of(objects)
	local list = {}
	for _, object in ipairs(objects) do
		local place = object.kind .. (object.metadata.namespace and " " .. object.metadata.namespace or "")
		for _, rule in ipairs(object.rules or {}) do
			for _, group in ipairs(rule.apiGroups) do
				for _, resource in ipairs(rule.resources) do
					for _, verb in ipairs(rule.verbs) do
						list[#list + 1] = ("%s %s/%s %s%s"):format(place, group, resource, verb,
							rule.resourceNames and " " .. table.concat(rule.resourceNames, ",") or "")
					end
				end
			end
		end
	end
	table.sort(list)
	return list
end

describe("perilune rbac", function()
	local folder = files.folder()

	local function rbac(...)
		local code, out, err = cli.run { "rbac", ... }
		assert.equal(0, code, err)
		return assert(k8s.yaml.decode_all(out)), out
	end

	local function script(text)
		return files.write(folder .. "/robot.lua", 'local k8s = require "perilune"\n' .. text)
	end

	for path in files.output_of({ "find", "examples", "-name", "init.lua" }):gmatch "[^\n]+" do
		local example = path:match "^(.*)/init.lua$"

		it("prints what the manifests of " .. example .. " grant", function()
			local objects = rbac(example)
			manifests.check_binding(objects)
			assert.same(rights_of(manifests.read(example .. "/manifests/rbac.yaml")), rights_of(objects))
			assert.equal(example:match "[^/]+$", manifests.find(objects, "ServiceAccount").metadata.name)
		end)
	end

	it("keeps rights in the namespaces that all informers name, but for what has none", function()
		local objects = rbac(script [[
			local pods = k8s.informer { apiVersion = "v1", resource = "pods", namespace = { "b", "a" } }
			k8s.informer { apiVersion = "v1", kind = "Node" }
			k8s.controller { name = "x", watch = pods, finalizer = "example.com/x", cleanup = print, reconcile = print }
			k8s.needs { { apiGroups = "", resources = { "nodes/status", "configmaps" }, verbs = "patch" } }
		]])
		assert.same({
			"ClusterRole /nodes list", "ClusterRole /nodes watch", "ClusterRole /nodes/status patch",
			"Role a /configmaps patch", "Role a /pods list", "Role a /pods patch", "Role a /pods watch",
			"Role b /configmaps patch", "Role b /pods list", "Role b /pods patch", "Role b /pods watch",
		}, rights_of(objects))
	end)

	it("takes -n for the default factory's informers, and gives no right twice", function()
		local text = [[
			k8s.informer { apiVersion = "v1", kind = "Secret" }
			k8s.informer { apiVersion = "v1", kind = "Secret", label_selector = "a=b" }
			k8s.needs { { apiGroups = "", resources = "secrets", verbs = { "list", "get" } } }
		]]
		assert.same({ "Role shop /secrets get", "Role shop /secrets list", "Role shop /secrets watch" }, rights_of(rbac(script(text), "-n", "shop")))
		local wide = text .. 'k8s.factory { namespace = "shop" }:informer { apiVersion = "v1", kind = "Secret" }'
		assert.same({ "ClusterRole /secrets get", "ClusterRole /secrets list", "ClusterRole /secrets watch" }, rights_of(rbac(script(wide))))
	end)

	it("tells of calls whose rights nothing declares", function()
		local text = [[
			k8s.informer { apiVersion = "v1", kind = "Node" }
			k8s.on_synced(function() k8s.ensure {} k8s.status.patch({}, {}) end)
		]]
		local remark = "# " .. folder .. "/robot.lua calls k8s.ensure, k8s.status.patch and declares no rights: what these need is for k8s.needs to say.\n"
		local _, out = rbac(script(text))
		assert.equal(remark, out:sub(1, #remark))
		_, out = rbac(script(text .. 'k8s.needs { { apiGroups = "", resources = "nodes/status", verbs = "patch" } }'))
		assert.is_nil(out:find("declares no rights", 1, true))
	end)

	it("sees calls of k8s.event in functions and modules", function()
		local place = files.folder()
		files.write(place .. "/init.lua", 'local k8s = require "perilune" k8s.informer { apiVersion = "v1", kind = "Node" } require "tell"')
		files.write(place .. "/tell.lua", 'local k8s = require "perilune" return function(o) local event = k8s.event event(o, {}) end')
		assert.same({
			"ClusterRole /nodes list", "ClusterRole /nodes watch", "ClusterRole events.k8s.io/events create",
			"ClusterRole events.k8s.io/events patch",
		}, rights_of(rbac(place)))
	end)

	it("adds the Lease where something is the leader's alone, or with --leader-elect", function()
		local lease = { "Role sys coordination.k8s.io/leases create", "Role sys coordination.k8s.io/leases get robot",
			"Role sys coordination.k8s.io/leases update robot" }
		local path = script 'k8s.every(60, print, { leader = true })'
		assert.same(lease, rights_of(rbac(path, "--leader-elect", "--lease", "sys/robot")))
		assert.same({ "Role sys coordination.k8s.io/leases create", "Role sys coordination.k8s.io/leases get perilune",
			"Role sys coordination.k8s.io/leases update perilune" }, rights_of(rbac(path, "--service-account", "sys/other")))
		assert.same(lease, rights_of(rbac(script "k8s.on_synced(print)", "--leader-elect", "--lease", "sys/robot")))
		assert.same({}, rights_of(rbac(script "k8s.on_synced(print)")))
	end)

	it("gives the rights to the service account that it is told", function()
		local objects = rbac(script 'k8s.informer { apiVersion = "v1", kind = "Pod", namespace = "shop" }', "--service-account", "sys/1")
		assert.same({ name = "1", namespace = "sys" }, manifests.find(objects, "ServiceAccount").metadata)
		local binding = manifests.find(objects, "RoleBinding")
		assert.equal("shop", binding.metadata.namespace)
		assert.same({ { kind = "ServiceAccount", name = "1", namespace = "sys" } }, binding.subjects)
		assert.same({ apiGroup = "rbac.authorization.k8s.io", kind = "Role", name = "1" }, binding.roleRef)
	end)

	it("guesses a plural that it can't know, says so, and looks it up in a cluster", function()
		local path = script 'k8s.informer { apiVersion = "example.com/v1", kind = "Policy", optional = true }'
		local objects, text = rbac(path)
		assert.same({ "ClusterRole example.com/policies list", "ClusterRole example.com/policies watch" }, rights_of(objects))
		assert.truthy(text:find("^# policies.example.com is a guess for the kind Policy"), text)
		local definition = files.write(folder .. "/crd.yaml", [[
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: polices.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { kind: Policy, plural: polices, singular: policy, listKind: PolicyList }
  versions: [{ name: v1, served: true, storage: true, schema: { openAPIV3Schema: { type: object } } }]
]])
		objects, text = rbac(path, "--sandbox", "--manifests", definition)
		assert.same({ "ClusterRole example.com/polices list", "ClusterRole example.com/polices watch" }, rights_of(objects))
		assert.falsy(text:find("guess", 1, true))
	end)

	it("prints the same for the same scripts, whatever their order", function()
		local _, one = rbac("examples/website", "examples/mirror")
		local _, other = rbac("examples/mirror", "examples/website")
		assert.equal(one, other)
	end)

	it("tells of kinds that a cluster does not have, and of scripts that do not load", function()
		local code, out, err = cli.run { "rbac", script 'k8s.informer { apiVersion = "v1", kind = "Podd" }', "--sandbox" }
		assert.equal(1, code)
		assert.equal("", out)
		assert.truthy(err:find('no kind "Podd" in v1', 1, true), err)
		code, out, err = cli.run { "rbac", script "error 'no luck'" }
		assert.equal(1, code)
		assert.equal("", out)
		assert.truthy(err:find("no luck", 1, true), err)
	end)
end)
