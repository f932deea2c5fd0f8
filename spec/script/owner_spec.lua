-- k8s.set_owner: what is written into an object before it is sent, and what is refused.
local k8s = require "perilune"

local function object(kind, namespace, name, uid)
	return { apiVersion = kind == "Deployment" and "apps/v1" or "v1", kind = kind, metadata = { namespace = namespace, name = name, uid = uid } }
end

describe("k8s.set_owner", function()
	local owner

	before_each(function()
		owner = object("Deployment", "shop", "web", "u1")
	end)

	local function reference(changes)
		local one = { apiVersion = "apps/v1", kind = "Deployment", name = "web", uid = "u1", controller = true, blockOwnerDeletion = true }
		for name, value in pairs(changes or {}) do
			one[name] = value
		end
		return one
	end

	it("gives the object back with its controller", function()
		local child = object("ConfigMap", "shop", "child")
		assert.equal(child, k8s.set_owner(child, owner))
		assert.same({ reference() }, child.metadata.ownerReferences)
		assert.truthy(k8s.json.encode(child):find('"ownerReferences":[{', 1, true))
	end)

	it("may be said again, also of an owner that was made anew or has another version", function()
		local child = k8s.set_owner(object("ConfigMap", "shop", "child"), owner)
		k8s.set_owner(child, owner)
		owner.metadata.uid, owner.apiVersion = "u2", "apps/v2"
		k8s.set_owner(child, owner)
		assert.same({ reference { uid = "u2", apiVersion = "apps/v2" } }, child.metadata.ownerReferences)
	end)

	it("leaves other owners in their places", function()
		local child = object("ConfigMap", "shop", "child")
		local other = { apiVersion = "v1", kind = "Service", name = "web", uid = "u9" }
		child.metadata.ownerReferences = k8s.array { other }
		k8s.set_owner(child, owner, { block_owner_deletion = false })
		assert.same({ other, { apiVersion = "apps/v1", kind = "Deployment", name = "web", uid = "u1", controller = true } },
			child.metadata.ownerReferences)
	end)

	it("adds an owner that is no controller to one that is", function()
		local child = k8s.set_owner(object("ConfigMap", "shop", "child"), owner)
		k8s.set_owner(child, object("Secret", "shop", "s", "u2"), { controller = false })
		assert.same({ true }, { child.metadata.ownerReferences[1].controller, child.metadata.ownerReferences[2].controller })
	end)

	it("takes a cluster-scoped owner anywhere", function()
		local node = object("Node", nil, "n", "u3")
		assert.equal("u3", k8s.set_owner(object("ConfigMap", "shop", "child"), node).metadata.ownerReferences[1].uid)
		assert.equal("u3", k8s.set_owner(object("Namespace", nil, "child"), node).metadata.ownerReferences[1].uid)
	end)

	local function refused(child, by, message, options)
		local before = k8s.json.encode(child)
		local ok, err = pcall(k8s.set_owner, child, by, options)
		assert.is_false(ok)
		assert.matches(message, err, 1, true)
		assert.matches("owner_spec.lua:", err, 1, true)
		assert.equal(before, k8s.json.encode(child))
	end

	it("refuses what the garbage collector would take for an orphan", function()
		refused(object("ConfigMap", "other", "child"), owner, "Deployment shop/web can't be the owner of ConfigMap other/child, "
			.. "which is in another namespace")
		refused(object("Namespace", nil, "child"), owner, "Deployment shop/web can't be the owner of Namespace child, which has no namespace")
	end)

	it("refuses a second controller", function()
		local child = k8s.set_owner(object("ConfigMap", "shop", "child"), owner)
		refused(child, object("Deployment", "shop", "other", "u2"), "ConfigMap shop/child is controlled by Deployment web already")
	end)

	it("refuses references that name nothing", function()
		for _, one in ipairs { { kind = "ConfigMap", name = "a" }, 5 } do
			local child = object("ConfigMap", "shop", "child")
			child.metadata.ownerReferences = { one }
			refused(child, owner, "ownerReferences[1] of the object must have apiVersion, kind and name")
		end
	end)

	it("refuses an owner that is only named", function()
		refused(object("ConfigMap", "shop", "child"), object("Deployment", "shop", "web"),
			"Deployment shop/web has no uid: take the owner from an informer, from k8s.get or from the answer of a write")
		refused(object("ConfigMap", "shop", "child"), { apiVersion = "v1", kind = "ConfigMap", namespace = "shop", name = "a" },
			"the owner must be an object with apiVersion, kind and metadata")
		refused(object("ConfigMap", "shop", "child"), owner, "unknown option 'control', did you mean 'controller'?", { control = false })
		refused(object("ConfigMap", "shop", "child"), owner, "controller must be a boolean, not a string", { controller = "no" })
	end)
end)
