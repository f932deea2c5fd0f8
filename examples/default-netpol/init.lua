-- default-netpol: gives each namespace a NetworkPolicy that lets in traffic from the namespace itself, and nothing else.
--
-- Further policies of a namespace's own allow more. The system's namespaces have none from here. Option:
--   --set skip=ingress,monitoring   further namespaces that are left alone
local k8s = require "perilune"

local NAME = "default-netpol"
local LABELS = { ["app.kubernetes.io/managed-by"] = NAME }

local skipped = { ["kube-system"] = true, ["kube-public"] = true, ["kube-node-lease"] = true }
for name in (k8s.config.skip or ""):gmatch "[^,%s]+" do
	skipped[name] = true
end

local namespaces = k8s.informer { apiVersion = "v1", kind = "Namespace", metadata_only = true }
local policies = k8s.informer {
	apiVersion = "networking.k8s.io/v1", kind = "NetworkPolicy", label_selector = "app.kubernetes.io/managed-by=" .. NAME,
}

k8s.needs { { apiGroups = "networking.k8s.io", resources = "networkpolicies", verbs = { "create", "patch" } } }

local function policy_for(namespace)
	return k8s.set_owner({
		apiVersion = "networking.k8s.io/v1",
		kind = "NetworkPolicy",
		metadata = { namespace = namespace.metadata.name, name = NAME, labels = LABELS },
		spec = {
			podSelector = {},
			policyTypes = { "Ingress" },
			ingress = { { from = { { podSelector = {} } } } },
		},
	}, namespace, { block_owner_deletion = false }) -- the end of a namespace takes all along, and waits for it, by itself
end

k8s.controller {
	name = NAME,
	watch = namespaces,
	owns = { policies },
	reconcile = function(request, context)
		local namespace = namespaces:get(request)
		if not namespace or namespace.metadata.deletionTimestamp or skipped[request.name] then
			return
		end
		local found = policies:get(request.name, NAME)
		local policy = assert(k8s.ensure(policy_for(namespace)))
		if not found or found.metadata.resourceVersion ~= policy.metadata.resourceVersion then
			context.log.info "policy written"
		end
	end,
}
