package main

import "fmt"

var (
	annotationNames = []string{
		"example.com/config-checksum", "example.com/deployed-by", "example.com/change-cause",
		"example.com/runbook", "prometheus.io/description", "sidecar.example.com/settings",
	}
	environmentNames = []string{
		"DATABASE_URL", "CACHE_URL", "LOG_SETTINGS", "FEATURE_FLAGS", "TRACING_ENDPOINT",
	}
)

// podBody: about 8.7 KB, of which 3.1 KB are managedFields. Two containers; the second is a sidecar.
func podBody(g *generator, c *collection, i int) {
	w := g.workloads[i%len(g.workloads)]
	created := g.time()
	started := created.Add(1e9 * 4)
	node := g.rng.IntN(g.nodes)
	volume := "kube-api-access-" + g.characters(suffixes, 5)

	c.head(g, i, w.namespace, fmt.Sprintf("%s-%s-%s", w.name, w.hash, g.characters(suffixes, 5)),
		fmt.Sprintf(`"app.kubernetes.io/name":"%s","app.kubernetes.io/managed-by":"Helm","pod-template-hash":"%s"`,
			w.name, w.hash), created)
	for n, name := range annotationNames {
		c.put(`,"%s":"%s"`, name, g.text(w.annotations[n], n < 3))
	}
	c.put(`},"generateName":"%s-%s-","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"%s-%s","uid":"%s",`+
		`"controller":true,"blockOwnerDeletion":true}],"managedFields":[`, w.name, w.hash, w.name, w.hash, w.replicaSetUID)
	c.fields("kube-controller-manager", "Update", "", created, podOwned(w))
	c.put(`,`)
	c.fields("kubelet", "Update", "status", started, podStatusOwned)
	c.put(`]},"spec":{"volumes":[{"name":"%s","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},`+
		`{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}}]`+
		`,"defaultMode":420}}],"containers":[`, volume)
	c.container(g, w, "main", w.image, volume, 0)
	c.put(`,`)
	c.container(g, w, "sidecar", "registry.example.com/mesh/proxy:v1.29.2", volume, len(environmentNames))
	c.put(`],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"%s",`+
		`"serviceAccount":"%s","nodeName":"node-%d","schedulerName":"default-scheduler",`+
		`"priority":0},"status":{`, w.name, w.name, node)
	c.phase(i)
	c.put(`,"conditions":[`)
	for n, what := range []string{"Initialized", "Ready", "ContainersReady"} {
		if n > 0 {
			c.put(`,`)
		}
		c.put(`{"type":"%s","status":"True","lastTransitionTime":"%s"}`, what, stamp(started))
	}
	ip := fmt.Sprintf("10.%d.%d.%d", node>>8&255, node&255, 2+g.rng.IntN(250))
	c.put(`],"hostIP":"10.0.%d.%d","podIP":"%s","podIPs":[{"ip":"%s"}],"startTime":"%s","containerStatuses":[`,
		node>>8&255, node&255, ip, ip, stamp(created))
	c.containerStatus(g, "main", w.image, w.imageID, stamp(started))
	c.put(`,`)
	c.containerStatus(g, "sidecar", "registry.example.com/mesh/proxy:v1.29.2", proxyDigest, stamp(started))
	c.put(`],"qosClass":"Burstable"}`)
}

const proxyDigest = "5f1d2c8b7a9e4c3d6b0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69"

func (c *collection) container(g *generator, w *workload, name, image, volume string, first int) {
	c.put(`{"name":"%s","image":"%s","ports":[{"containerPort":8080,"protocol":"TCP"}],"env":[`, name, image)
	for n, variable := range environmentNames {
		if n > 0 {
			c.put(`,`)
		}
		c.put(`{"name":"%s","value":"%s"}`, variable, g.text(w.environment[first+n], n < 1))
	}
	c.put(`],"resources":{"limits":{"memory":"512Mi"},"requests":{"cpu":"100m","memory":"256Mi"}},"volumeMounts":[{"name":"%s","readOnly":true,`+
		`"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],"imagePullPolicy":"IfNotPresent"}`, volume)
}

func (c *collection) containerStatus(g *generator, name, image, digest, started string) {
	c.put(`{"name":"%s","state":{"running":{"startedAt":"%s"}},"ready":true,"restartCount":%d,"image":"%s",`+
		`"imageID":"sha256:%s","containerID":"containerd://%s","started":true}`,
		name, started, g.rng.IntN(3), image, digest, g.digest())
}

func podOwned(w *workload) string {
	out := `"f:metadata":{"f:annotations":{".":{}`
	for _, name := range annotationNames {
		out += fmt.Sprintf(`,"f:%s":{}`, name)
	}
	out += fmt.Sprintf(`},"f:generateName":{},"f:labels":{".":{},"f:app.kubernetes.io/name":{},`+
		`"f:app.kubernetes.io/managed-by":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"%s\"}":{}}},"f:spec":{"f:containers":{`,
		w.replicaSetUID)
	for n, name := range []string{"main", "sidecar"} {
		if n > 0 {
			out += `,`
		}
		out += fmt.Sprintf(`"k:{\"name\":\"%s\"}":{".":{},"f:env":{".":{}`, name)
		for _, variable := range environmentNames {
			out += fmt.Sprintf(`,"k:{\"name\":\"%s\"}":{".":{},"f:name":{},"f:value":{}}`, variable)
		}
		out += `},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},` +
			`"f:containerPort":{},"f:name":{},"f:protocol":{}}},"f:resources":{".":{},"f:limits":{".":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},` +
			`"f:volumeMounts":{".":{},"k:{\"mountPath\":\"/var/run/secrets/kubernetes.io/serviceaccount\"}":{".":{},` +
			`"f:mountPath":{},"f:name":{},"f:readOnly":{}}}}`
	}
	return out + `},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},` +
		`"f:serviceAccount":{},"f:serviceAccountName":{},"f:terminationGracePeriodSeconds":{}}`
}

const podStatusOwned = `"f:status":{"f:conditions":{".":{},"k:{\"type\":\"PodReadyToStartContainers\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"ContainersReady\"}":{".":{},"f:lastProbeTime":{},"f:status":{},"f:type":{}},` +
	`"k:{\"type\":\"Initialized\"}":{".":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},` +
	`"f:containerStatuses":{},"f:hostIP":{},"f:phase":{},"f:podIP":{},"f:podIPs":{},"f:startTime":{}}`
