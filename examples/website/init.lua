-- website: serves each Website's HTML from a Deployment, a Service and a ConfigMap, and says in its status how that goes.
--
-- The Website owns the three: what is changed in them or deleted comes back, and they go with it. They have its name; what had that
-- name before is taken over, unless another controller has it. Options:
--   --set image=nginx:1.29-alpine     the web server, which serves /usr/share/nginx/html at port 80
local k8s = require "perilune"

local image = k8s.config.image or "nginx:1.29-alpine"

-- What is made here carries this label, so that the caches hold nothing else.
local MANAGED_BY = "app.kubernetes.io/managed-by"
local made_here = MANAGED_BY .. "=website"

local websites = k8s.informer { apiVersion = "example.com/v1", kind = "Website" }
local deployments = k8s.informer { apiVersion = "apps/v1", kind = "Deployment", label_selector = made_here }
local services = k8s.informer { apiVersion = "v1", kind = "Service", label_selector = made_here }
local configmaps = k8s.informer { apiVersion = "v1", kind = "ConfigMap", label_selector = made_here }

k8s.needs {
	{ apiGroups = "", resources = { "services", "configmaps" }, verbs = { "create", "patch" } },
	{ apiGroups = "apps", resources = "deployments", verbs = { "create", "patch" } },
	{ apiGroups = "example.com", resources = { "websites/status", "websites/finalizers" }, verbs = "update" },
}

local function pod_labels(site)
	return { ["app.kubernetes.io/name"] = site.metadata.name }
end

-- Completes an object that the Website is to own.
local function owned_by(site, object)
	object.metadata = {
		namespace = site.metadata.namespace,
		name = site.metadata.name,
		labels = { [MANAGED_BY] = "website" },
	}
	return k8s.set_owner(object, site)
end

local function configmap_of(site)
	return owned_by(site, {
		apiVersion = "v1",
		kind = "ConfigMap",
		data = { ["index.html"] = site.spec.html },
	})
end

local function service_of(site)
	return owned_by(site, {
		apiVersion = "v1",
		kind = "Service",
		spec = { selector = pod_labels(site), ports = { { name = "http", port = 80, protocol = "TCP" } } },
	})
end

local function deployment_of(site)
	return owned_by(site, {
		apiVersion = "apps/v1",
		kind = "Deployment",
		spec = {
			replicas = site.spec.replicas,
			selector = { matchLabels = pod_labels(site) },
			template = {
				metadata = { labels = pod_labels(site) },
				spec = {
					containers = {
						{
							name = "web",
							image = image,
							ports = { { name = "http", containerPort = 80, protocol = "TCP" } },
							volumeMounts = { { name = "html", mountPath = "/usr/share/nginx/html", readOnly = true } },
						},
					},
					volumes = { { name = "html", configMap = { name = site.metadata.name } } },
				},
			},
		},
	})
end

-- What is to be said of a Deployment: whether it is ready, a reason and a message. One whose controller has not seen the latest spec yet
-- speaks of an older one, and is not ready whatever it says; one that can't go on says so in a condition.
local function judge(deployment, wanted)
	local found, stuck = deployment.status or {}, k8s.conditions.get(deployment, "Progressing")
	local updated, ready = found.updatedReplicas or 0, found.readyReplicas or 0
	local message = ("%d of %d replicas are up to date, %d ready"):format(updated, wanted, ready)
	if found.observedGeneration ~= deployment.metadata.generation then
		return "False", "RollingOut", message
	elseif stuck and stuck.status == "False" then
		return "False", stuck.reason, stuck.message
	elseif updated == wanted and ready == wanted then
		return "True", "RolledOut", message
	end
	return "False", "RollingOut", message
end

-- The Deployment, or nil and why one of the three could not be applied.
local function ensure_all(site)
	local object, err
	for _, wanted in ipairs { configmap_of(site), service_of(site), deployment_of(site) } do
		object, err = k8s.ensure(wanted)
		if err then
			return nil, err
		end
	end
	return object
end

-- Writes the Website's status where it is not what the Deployment's says. The err, if any.
local function report(site, deployment, log)
	local status, reason, message = judge(deployment, site.spec.replicas)
	local changed = k8s.conditions.set(site, { type = "Ready", status = status, reason = reason, message = message })
	local fields = {
		observedGeneration = site.metadata.generation,
		replicas = k8s.path(deployment, "status.replicas", 0),
		readyReplicas = k8s.path(deployment, "status.readyReplicas", 0),
		selector = "app.kubernetes.io/name=" .. site.metadata.name,
	}
	for name, value in pairs(fields) do
		changed = changed or site.status[name] ~= value
		site.status[name] = value
	end
	if changed then
		local done, err = k8s.status.update(site)
		if done then
			log.info("status written", { reason = reason, message = message })
		end
		return err
	end
end

-- Whether it failed because the Website goes, alone or with its namespace, into which nothing new can be put then.
local function is_end(err)
	for _, cause in ipairs(err.causes or {}) do
		if cause.reason == "NamespaceTerminating" then
			return true
		end
	end
	return err.reason == "NotFound"
end

-- The garbage collector deletes what a Website owned; so nothing is made any more for one that is going.
k8s.controller {
	name = "website",
	watch = { websites, when = k8s.predicate.generation_changed },
	owns = { deployments, services, configmaps },
	workers = 4,
	reconcile = function(request, context)
		local site = websites:get(request)
		if not site or site.metadata.deletionTimestamp then
			return
		end
		local deployment, err = ensure_all(site)
		err = err or report(site, deployment, context.log)
		if err and not is_end(err) then
			return nil, err
		end
	end,
}
