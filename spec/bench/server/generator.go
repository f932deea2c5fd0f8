package main

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// generator makes objects that look like those of a cluster at work. The same seed gives the same objects. What is
// random in the set "random" is text of the same length in the set "plain", taken from few words.
type generator struct {
	rng       *rand.Rand
	random    bool
	workloads []*workload
	nodes     int
	mark      string // the name of the object that is being made, where it is the mark
}

// workload is a Deployment whose pods are alike.
type workload struct {
	name, namespace, hash, uid, replicaSetUID string
	image, imageID                            string
	annotations, environment                  []string // values in the set "plain"
}

var (
	namespaces = strings.Fields("shop billing search media ingest platform identity reports logging payments")
	nouns      = strings.Fields("api worker gateway cache indexer mailer scheduler proxy frontend exporter consumer importer")
	words      = strings.Fields("https internal service cluster local enabled true false default info debug production " +
		"europe-west primary replica timeout retries max-connections 30s 250 1024 queue topic bucket endpoint token")
)

const (
	letters  = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
	suffixes = "bcdfghjklmnpqrstvwxz2456789" // what Kubernetes makes generated names of
	hex      = "0123456789abcdef"
)

var epoch = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// generate makes count objects, and one more called "mark" unless count is 0.
func generate(k *kind, count int, seed uint64, random bool) *collection {
	g := &generator{rng: rand.New(rand.NewPCG(seed, uint64(len(k.plural)))), random: random, nodes: max(3, count/80)}
	for range max(1, count/30) {
		g.workloads = append(g.workloads, g.workload())
	}
	c := &collection{kind: k, watchers: map[*watcher]bool{}}
	c.modified = c.eventHead("MODIFIED")
	if count == 0 {
		return c
	}
	for i := range count + 1 {
		if i == 64 {
			c.text = append(make([]byte, 0, len(c.text)/64*(count+count/50)), c.text...)
		}
		c.add(g, i, i == count)
	}
	return c
}

// add makes one object; body writes at the end of the text and notes where the item's places are.
func (c *collection) add(g *generator, i int, mark bool) {
	if i > 0 {
		c.text = append(c.text, ',')
	}
	c.text = append(c.text, '{')
	c.items = append(c.items, item{start: len(c.text)})
	name := ""
	if mark {
		name = "mark"
	}
	g.mark = name
	c.kind.body(g, c, i)
	c.items[i].end = len(c.text)
	c.text = append(c.text, '}')
}

func (g *generator) pick(from []string) string { return from[g.rng.IntN(len(from))] }

func (g *generator) characters(of string, n int) string {
	out := make([]byte, n)
	for i := range out {
		out[i] = of[g.rng.IntN(len(of))]
	}
	return string(out)
}

func (g *generator) uid() string {
	h := g.characters(hex, 31)
	return fmt.Sprintf("%s-%s-4%s-a%s-%s", h[:8], h[8:12], h[12:15], h[15:18], h[18:30])
}

func (g *generator) digest() string { return g.characters(hex, 64) }

// sentence is words of n characters in all.
func (g *generator) sentence(n int) string {
	var out strings.Builder
	for out.Len() < n {
		out.WriteString(g.pick(words))
		out.WriteByte("-./: "[g.rng.IntN(5)])
	}
	return out.String()[:n]
}

// value is a text that people wrote: plain, or of the same length and random.
func (g *generator) value(plain string) string {
	if !g.random {
		return plain
	}
	return g.characters(letters, len(plain))
}

// text is the value that objects of a workload share, or one of this object alone.
func (g *generator) text(shared string, own bool) string {
	if own {
		shared = g.sentence(len(shared))
	}
	return g.value(shared)
}

func (g *generator) data(n int) string {
	return base64.StdEncoding.EncodeToString([]byte(g.value(g.sentence(n))))
}

func (g *generator) time() time.Time {
	return epoch.Add(time.Duration(g.rng.IntN(200*24*3600)) * time.Second)
}

func stamp(t time.Time) string { return t.Format(time.RFC3339) }

func (g *generator) workload() *workload {
	w := &workload{
		name:          g.pick(nouns) + "-" + g.pick(nouns),
		namespace:     g.pick(namespaces),
		hash:          g.characters(suffixes, 10),
		uid:           g.uid(),
		replicaSetUID: g.uid(),
		imageID:       g.digest(),
	}
	w.image = fmt.Sprintf("registry.example.com/%s/%s:v%d.%d.%d", w.namespace, w.name, g.rng.IntN(4), g.rng.IntN(30), g.rng.IntN(10))
	for range len(annotationNames) {
		w.annotations = append(w.annotations, g.sentence(128))
	}
	for range 2 * len(environmentNames) {
		w.environment = append(w.environment, g.sentence(124))
	}
	return w
}
