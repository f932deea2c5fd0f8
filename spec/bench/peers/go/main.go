// peer-client-go watches the pods of spec/bench/server with client-go, for scripts/bench.
//
//	peer-client-go -kubeconfig FILE [-dynamic] [-list] [-controller]
//
// It prints lines of JSON: {"synced":OBJECTS} when its cache has filled; {"settled":true} after a garbage collection
// that gave memory back to the system; and, when the update of the pod "mark" has come, {"events":N,"last":NANOSECONDS,
// "latencies":[MILLISECONDS...]} of what came since the mark before, latencies being the 50th and 99th percentile.
// With -controller the events are reconciles of a work queue with one worker, and have no latencies. It ends when stdin
// does.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/features"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

const markPhase = "Unknown"

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path")
	isDynamic := flag.Bool("dynamic", false, "unstructured objects")
	list := flag.Bool("list", false, "LIST and WATCH instead of a watch-list")
	controller := flag.Bool("controller", false, "a work queue and an empty reconcile")
	flag.Parse()
	if *list {
		features.ReplaceFeatureGates(withoutWatchList{features.FeatureGates()})
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	informer := newInformer(ctx, config, *isDynamic)
	check(informer.SetTransform(dropManagedFields))
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	_, err = informer.AddEventHandler(handlers(queue, *controller))
	check(err)
	go informer.Run(ctx.Done())
	if !cache.WaitFor(ctx, "", informer.HasSyncedChecker()) { // WaitForCacheSync looks only ten times a second
		return
	}
	say(map[string]any{"synced": len(informer.GetStore().ListKeys())})
	time.Sleep(200 * time.Millisecond) // the CPU time to sync is read meanwhile
	debug.FreeOSMemory()
	say(map[string]any{"settled": true})
	go func() {
		for work(queue) {
		}
	}()
	<-ctx.Done()
	queue.ShutDown()
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

var output sync.Mutex

func say(what map[string]any) {
	line, err := json.Marshal(what)
	check(err)
	output.Lock()
	defer output.Unlock()
	fmt.Printf("%s\n", line)
}

type withoutWatchList struct{ features.Gates }

func (g withoutWatchList) Enabled(key features.Feature) bool {
	return key != features.WatchListClient && g.Gates.Enabled(key)
}

func newInformer(ctx context.Context, config *rest.Config, isDynamic bool) cache.SharedIndexInformer {
	if isDynamic {
		client, err := dynamic.NewForConfig(config)
		check(err)
		factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
		return factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Informer()
	}
	client, err := kubernetes.NewForConfig(config)
	check(err)
	return informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()
}

func dropManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// tally counts what came since the mark before.
var tally struct {
	events    int
	latencies []float64
}

func onUpdate(_, object any) {
	phase, sent := "", ""
	switch pod := object.(type) {
	case *corev1.Pod:
		phase, sent = string(pod.Status.Phase), pod.Annotations["bench/sent"]
	case *unstructured.Unstructured:
		phase, _, _ = unstructured.NestedString(pod.Object, "status", "phase")
		sent = pod.GetAnnotations()["bench/sent"]
	}
	if phase == markPhase {
		report()
		return
	}
	now := time.Now().UnixNano()
	at, err := strconv.ParseInt(sent, 10, 64)
	check(err)
	tally.events++
	last = now
	tally.latencies = append(tally.latencies, float64(now-at)/1e6)
}

var last int64

func report() {
	slices.Sort(tally.latencies)
	percentiles := []float64{}
	if n := len(tally.latencies); n > 0 {
		percentiles = append(percentiles, tally.latencies[n/2], tally.latencies[n*99/100])
	}
	say(map[string]any{"events": tally.events, "last": strconv.FormatInt(last, 10), "latencies": percentiles})
	tally.events, tally.latencies = 0, nil
}

type keys = workqueue.TypedRateLimitingInterface[string]

func handlers(queue keys, controller bool) cache.ResourceEventHandlerFuncs {
	if !controller {
		return cache.ResourceEventHandlerFuncs{UpdateFunc: onUpdate}
	}
	add := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			queue.Add(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, object any) { add(object) }, DeleteFunc: add}
}

func work(queue keys) bool {
	key, shutdown := queue.Get()
	if shutdown {
		return false
	}
	defer queue.Done(key)
	if _, name, _ := cache.SplitMetaNamespaceKey(key); name == "mark" {
		report()
	} else {
		tally.events++
		last = time.Now().UnixNano()
	}
	queue.Forget(key)
	return true
}
