--- The built-in kinds, a row each: group/version, kind, plural, then what is special about it.
--
-- A row's words: cluster (no namespace), status and scale (subresources), generation (the server counts changes of the
-- spec), and short= and categories= with names for kubectl. `returns` marks kinds whose DELETE answers with the object,
-- `graceful` those that then say when they were to end, `create` those that can only be created and are answered at once,
-- `versioned` those whose update must carry a resourceVersion.
--
-- The order is the order of discovery, which decides between kinds of the same plural.
local ROWS = [[
v1 ConfigMap configmaps short=cm
v1 Endpoints endpoints short=ep
v1 Event events short=ev
v1 LimitRange limitranges short=limits
v1 Namespace namespaces cluster status returns short=ns
v1 Node nodes cluster status short=no
v1 PersistentVolumeClaim persistentvolumeclaims status returns short=pvc
v1 PersistentVolume persistentvolumes cluster status returns short=pv
v1 Pod pods status returns graceful generation short=po categories=all
v1 PodTemplate podtemplates returns generation
v1 ReplicationController replicationcontrollers status scale generation short=rc categories=all
v1 ResourceQuota resourcequotas status returns short=quota
v1 Secret secrets
v1 ServiceAccount serviceaccounts returns short=sa
v1 Service services status returns short=svc categories=all
apps/v1 ControllerRevision controllerrevisions
apps/v1 DaemonSet daemonsets status generation short=ds categories=all
apps/v1 Deployment deployments status scale generation short=deploy categories=all
apps/v1 ReplicaSet replicasets status scale generation short=rs categories=all
apps/v1 StatefulSet statefulsets status scale generation short=sts categories=all
events.k8s.io/v1 Event events short=ev
authentication.k8s.io/v1 SelfSubjectReview selfsubjectreviews cluster create
authentication.k8s.io/v1 TokenReview tokenreviews cluster create
authorization.k8s.io/v1 SelfSubjectAccessReview selfsubjectaccessreviews cluster create
authorization.k8s.io/v1 SubjectAccessReview subjectaccessreviews cluster create
autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers status short=hpa categories=all
batch/v1 CronJob cronjobs status generation short=cj categories=all
batch/v1 Job jobs status generation categories=all
networking.k8s.io/v1 IngressClass ingressclasses cluster generation
networking.k8s.io/v1 Ingress ingresses status generation short=ing
networking.k8s.io/v1 NetworkPolicy networkpolicies generation short=netpol
policy/v1 PodDisruptionBudget poddisruptionbudgets status generation short=pdb
rbac.authorization.k8s.io/v1 ClusterRoleBinding clusterrolebindings cluster
rbac.authorization.k8s.io/v1 ClusterRole clusterroles cluster
rbac.authorization.k8s.io/v1 RoleBinding rolebindings
rbac.authorization.k8s.io/v1 Role roles
storage.k8s.io/v1 CSIDriver csidrivers cluster returns
storage.k8s.io/v1 CSINode csinodes cluster returns
storage.k8s.io/v1 StorageClass storageclasses cluster returns short=sc
storage.k8s.io/v1 VolumeAttachment volumeattachments cluster status returns
admissionregistration.k8s.io/v1 MutatingWebhookConfiguration mutatingwebhookconfigurations cluster generation
admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration validatingwebhookconfigurations cluster generation
apiextensions.k8s.io/v1 CustomResourceDefinition customresourcedefinitions cluster status generation short=crd,crds categories=api-extensions
scheduling.k8s.io/v1 PriorityClass priorityclasses cluster generation short=pc
coordination.k8s.io/v1 Lease leases versioned
node.k8s.io/v1 RuntimeClass runtimeclasses cluster
discovery.k8s.io/v1 EndpointSlice endpointslices generation
]]

local FLAGS = { status = true, scale = true, generation = true, returns = true, graceful = true, create = true, versioned = true }

local function names(list)
	local found = {}
	for name in list:gmatch "[^,]+" do
		found[#found + 1] = name
	end
	return found
end

local function add_word(row, word)
	local name, value = word:match "^(%w+)=(.*)$"
	if name then
		row[name] = names(value)
	elseif word == "cluster" then
		row.namespaced = false
	else
		assert(FLAGS[word], word)
		row[word] = true
	end
end

local function parse(line)
	local words = line:gmatch "%S+"
	local api_version, kind, plural = words(), words(), words()
	local group, version = api_version:match "^(.*)/(.*)$"
	local row = {
		group = group or "", version = version or api_version, kind = kind, plural = plural,
		namespaced = true, short = {}, categories = {},
	}
	for word in words do
		add_word(row, word)
	end
	return row
end

local rows = {}
for line in ROWS:gmatch "[^\n]+" do
	rows[#rows + 1] = parse(line)
end

return rows
