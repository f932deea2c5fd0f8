package main

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"
)

const (
	listVersion   = 3000000000 // of a list; the objects in it are older, updates are newer
	versionDigits = 10
	sentDigits    = 19
)

// kind is what discovery says of one, and how to make its objects.
type kind struct {
	group, version, name, plural string
	namespaced                   bool
	body                         func(*generator, *collection, int)
}

func (k *kind) apiVersion() string {
	if k.group == "" {
		return k.version
	}
	return k.group + "/" + k.version
}

func (k *kind) path() string {
	if k.group == "" {
		return "/api/" + k.version
	}
	return "/apis/" + k.apiVersion()
}

// collection holds the objects of one kind as one run of text, "{" BODY "},{" BODY ... "}", from which a page of a list
// is a slice. A body is an object without its braces, apiVersion and kind.
type collection struct {
	kind  *kind
	text  []byte
	items []item

	mu       sync.Mutex
	watchers map[*watcher]bool
	modified []byte // how an update begins
	version  int64  // of the last update
	next     int    // the object that is updated next
}

// item says where a body stands in the text, and in it what an update changes: resourceVersion, phase (seven letters)
// and the annotation bench/sent.
type item struct {
	start, end           int
	version, phase, sent int
}

// count has the last object too, the one called "mark".
func (c *collection) count() int {
	return len(c.items)
}

// page gives a list of the items from first to before last, in three parts.
func (c *collection) page(first, last int) (head, items, tail []byte) {
	more := ""
	if last < len(c.items) {
		more = fmt.Sprintf(`,"continue":"%d","remainingItemCount":%d`, last, len(c.items)-last)
	}
	head = fmt.Appendf(nil, `{"kind":"%sList","apiVersion":"%s","metadata":{"resourceVersion":"%d"%s},"items":[`,
		c.kind.name, c.kind.apiVersion(), int64(listVersion), more)
	if first < last {
		items = c.text[c.items[first].start-1 : c.items[last-1].end+1]
	}
	return head, items, []byte("]}\n")
}

func (c *collection) eventHead(what string) []byte {
	return fmt.Appendf(nil, `{"type":"%s","object":{"kind":"%s","apiVersion":"%s",`, what, c.kind.name, c.kind.apiVersion())
}

var eventTail = []byte("}}\n")

// bookmark is one of the given version; last says that the initial state ends with it.
func (c *collection) bookmark(version int64, last bool) []byte {
	annotations := ""
	if last {
		annotations = `,"annotations":{"k8s.io/initial-events-end":"true"}`
	}
	return fmt.Appendf(c.eventHead("BOOKMARK"), `"metadata":{"resourceVersion":"%d","creationTimestamp":null%s}%s`,
		version, annotations, eventTail)
}

// update writes a MODIFIED event of an object into out.
func (c *collection) update(out *bytes.Buffer, i int, version int64, phase string, sent int64) {
	item := &c.items[i]
	out.Write(c.modified)
	body := out.Len()
	out.Write(c.text[item.start:item.end])
	written := out.Bytes()[body:]
	digits := strconv.AppendInt(make([]byte, 0, 20), version, 10)
	copy(written[item.version-item.start:], digits[:versionDigits])
	copy(written[item.phase-item.start:], phase)
	copy(written[item.sent-item.start:], strconv.AppendInt(digits[:0], sent, 10)[:sentDigits])
	out.Write(eventTail)
}
