package main

import (
	"fmt"
	"time"
)

var kinds = []*kind{
	{"", "v1", "Pod", "pods", true, podBody},
	{"", "v1", "ConfigMap", "configmaps", true, configMapBody},
	{"", "v1", "Secret", "secrets", true, secretBody},
	{"", "v1", "Node", "nodes", false, nodeBody},
	{"bench.perilune", "v1", "Report", "reports", true, reportBody},
}

// put appends JSON to the object that is being made.
func (c *collection) put(format string, values ...any) {
	c.text = fmt.Appendf(c.text, format, values...)
}

// head begins metadata, up to the annotations, which stay open. labels is JSON.
func (c *collection) head(g *generator, i int, namespace, name, labels string, created time.Time) {
	at := &c.items[i]
	if g.mark != "" {
		name = g.mark
	}
	c.put(`"metadata":{"name":"%s",`, name)
	if namespace != "" {
		c.put(`"namespace":"%s",`, namespace)
	}
	c.put(`"uid":"%s","resourceVersion":"`, g.uid())
	at.version = len(c.text)
	c.put(`%d","generation":1,"creationTimestamp":"%s","labels":{%s},"annotations":{"bench/sent":"`,
		listVersion-1-g.rng.IntN(1e9), stamp(created), labels)
	at.sent = len(c.text)
	c.put(`%0*d"`, sentDigits, 0)
}

// phase writes the phase, which an update changes.
func (c *collection) phase(i int) {
	c.put(`"phase":"`)
	c.items[i].phase = len(c.text)
	c.put(`Running"`)
}

// fields names what a manager owns, as managedFields does.
func (c *collection) fields(manager, operation, subresource string, at time.Time, fields string) {
	c.put(`{"manager":"%s","operation":"%s","apiVersion":"%s","time":"%s","fieldsType":"FieldsV1","fieldsV1":{%s}`,
		manager, operation, c.kind.apiVersion(), stamp(at), fields)
	if subresource != "" {
		c.put(`,"subresource":"%s"`, subresource)
	}
	c.put(`}`)
}

func configMapBody(g *generator, c *collection, i int) {
	w := g.workloads[g.rng.IntN(len(g.workloads))]
	created := g.time()
	c.head(g, i, w.namespace, fmt.Sprintf("%s-config-%d", w.name, i),
		fmt.Sprintf(`"app.kubernetes.io/name":"%s","app.kubernetes.io/part-of":"%s"`, w.name, w.namespace), created)
	c.put(`,"config/checksum":"%s"},"managedFields":[`, g.value(w.annotations[0]))
	c.fields("kubectl-client-side-apply", "Update", "", created, `"f:data":{".":{},"f:settings":{}}`)
	c.put(`]},"data":{`)
	c.phase(i)
	for n, name := range []string{"settings", "endpoints", "flags"} {
		c.put(`,"%s":"%s"`, name, g.value(w.environment[n][:60]+w.annotations[n+1][:40]))
	}
	c.put(`}`)
}

func secretBody(g *generator, c *collection, i int) {
	w := g.workloads[g.rng.IntN(len(g.workloads))]
	created := g.time()
	c.head(g, i, w.namespace, fmt.Sprintf("%s-secret-%d", w.name, i), fmt.Sprintf(`"app":"%s"`, w.name), created)
	c.put(`},"managedFields":[`)
	c.fields("external-secrets", "Update", "", created, `"f:data":{".":{},"f:password":{},"f:tls.key":{}},"f:type":{}`)
	c.put(`]},"data":{`)
	c.phase(i)
	c.put(`,"password":"%s","tls.key":"%s","tls.crt":"%s"},"type":"Opaque"`, g.data(24), g.data(800), g.data(900))
}

func nodeBody(g *generator, c *collection, i int) {
	created := g.time()
	zone := g.rng.IntN(3)
	name := fmt.Sprintf("node-%d", i)
	c.head(g, i, "", name, fmt.Sprintf(`"kubernetes.io/hostname":"%s","kubernetes.io/arch":"amd64","kubernetes.io/os":"linux",`+
		`"topology.kubernetes.io/region":"europe-west1","topology.kubernetes.io/zone":"europe-west1-%c",`+
		`"node.kubernetes.io/instance-type":"n2-standard-%d"`, name, "bcd"[zone], 4<<g.rng.IntN(3)), created)
	c.put(`,"csi.volume.kubernetes.io/nodeid":"%s","volumes.kubernetes.io/controller-managed-attach-detach":"true"},"managedFields":[`,
		g.value(g.sentence(60)))
	c.fields("kubelet", "Update", "status", created, `"f:status":{"f:allocatable":{},"f:capacity":{},"f:conditions":{},"f:images":{}}`)
	c.put(`]},"spec":{"podCIDR":"10.%d.%d.0/24","providerID":"gce://bench/europe-west1-%c/%s"},"status":{`, i>>8&255, i&255, "bcd"[zone], name)
	c.phase(i)
	c.put(`,"capacity":{"cpu":"8","memory":"32878360Ki","pods":"110"},"allocatable":{"cpu":"7910m","memory":"28730136Ki","pods":"110"},` +
		`"conditions":[`)
	for n, what := range []string{"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"} {
		if n > 0 {
			c.put(`,`)
		}
		c.put(`{"type":"%s","status":"False","lastHeartbeatTime":"%s","lastTransitionTime":"%s","reason":"KubeletHas%s","message":"kubelet has no %s"}`,
			what, stamp(g.time()), stamp(created), what, what)
	}
	c.put(`],"addresses":[{"type":"InternalIP","address":"10.0.%d.%d"},{"type":"Hostname","address":"%s"}],`, i>>8&255, i&255, name)
	c.put(`"nodeInfo":{"machineID":"%s","systemUUID":"%s","bootID":"%s","kernelVersion":"6.1.0","osImage":"Debian GNU/Linux 12",`+
		`"containerRuntimeVersion":"containerd://2.1.4","kubeletVersion":"v1.36.3","operatingSystem":"linux","architecture":"amd64"},"images":[`,
		g.characters(hex, 32), g.uid(), g.uid())
	for n := range 20 {
		if n > 0 {
			c.put(`,`)
		}
		w := g.workloads[g.rng.IntN(len(g.workloads))]
		c.put(`{"names":["%s","registry.example.com/%s@sha256:%s"],"sizeBytes":%d}`, w.image, w.name, w.imageID, g.rng.IntN(4e8))
	}
	c.put(`]}`)
}

func reportBody(g *generator, c *collection, i int) {
	w := g.workloads[g.rng.IntN(len(g.workloads))]
	created := g.time()
	c.head(g, i, w.namespace, fmt.Sprintf("%s-report-%d", w.name, i), fmt.Sprintf(`"app":"%s"`, w.name), created)
	c.put(`},"managedFields":[`)
	c.fields("scanner", "Update", "status", created, `"f:status":{".":{},"f:groups":{},"f:summary":{}}`)
	c.put(`]},"spec":{"target":{"kind":"Deployment","name":"%s"},"policy":"%s"},"status":{`, w.name, g.value(w.annotations[0]))
	c.phase(i)
	c.put(`,"summary":{"critical":%d,"high":%d,"score":%.3f},"groups":[`, g.rng.IntN(3), g.rng.IntN(20), g.rng.Float64())
	for n := range 6 {
		if n > 0 {
			c.put(`,`)
		}
		c.put(`{"name":"group-%d","checks":{"result":{"passed":%t,"details":{"items":[{"id":"CVE-2026-%d","fix":{"version":"%d.%d","notes":{"text":"%s"}}},null]}}}}`,
			n, g.rng.IntN(2) == 0, g.rng.IntN(40000), g.rng.IntN(9), g.rng.IntN(40), g.value(w.environment[n]))
	}
	c.put(`]}`)
}
