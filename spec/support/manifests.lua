--- The manifests of an example, and a user who may do what they allow and nothing else.
--
--   local role = manifests.read "examples/pod-log/manifests/rbac.yaml"     its objects, in order
--   manifests.find(role, "ClusterRole")                                   the only one of that kind
--   manifests.check_binding(role)               the binding gives that role to that service account
--   manifests.definition "examples/website"     path of its manifests/crd.yaml; nil where it has none
--   manifests.kubeconfig(role, cluster)         path of such a user's kubeconfig; the admin's where no user can be made
local files = require "support.files"
local k8s = require "perilune"

local manifests = {}

function manifests.read(path)
	return assert(k8s.yaml.decode_all(files.read(path)))
end

function manifests.find(objects, kind)
	local found
	for _, object in ipairs(objects) do
		if object.kind == kind then
			assert(not found, "more than one " .. kind)
			found = object
		end
	end
	return assert(found, "no " .. kind)
end

function manifests.check_binding(objects)
	local account, binding = manifests.find(objects, "ServiceAccount"), manifests.find(objects, "ClusterRoleBinding")
	local role, subject = manifests.find(objects, "ClusterRole"), binding.subjects[1]
	assert(#binding.subjects == 1 and subject.kind == "ServiceAccount")
	assert(subject.name == account.metadata.name and subject.namespace == account.metadata.namespace)
	assert(binding.roleRef.kind == "ClusterRole" and binding.roleRef.name == role.metadata.name)
end

function manifests.definition(folder)
	local path = folder .. "/manifests/crd.yaml"
	local file = io.open(path)
	return file and file:close() and path or nil
end

function manifests.kubeconfig(objects, cluster)
	local name = cluster.random_name()
	local path = cluster.user(name)
	if not path then
		return cluster.kubeconfig()
	end
	cluster.grant(name, manifests.find(objects, "ClusterRole").rules)
	return path
end

return manifests
