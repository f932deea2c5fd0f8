package main

import (
	"bytes"
	"errors"
	"strconv"
	"sync"
	"time"
)

const (
	batchBytes       = 200 << 10 // of updates before they are sent
	bookmarkInterval = 10 * time.Second
)

// watcher is an open watch. A write holds mu, so that events are whole.
type watcher struct {
	mu    sync.Mutex
	reply reply
	gone  chan struct{}
	once  sync.Once
}

func (w *watcher) send(event []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reply.write(event) != nil || w.reply.flush() != nil {
		w.once.Do(func() { close(w.gone) })
	}
}

// watch keeps a watch open until its client goes, and tells it now and then how far it has come.
func (c *collection) watch(reply reply) {
	w := &watcher{reply: reply, gone: make(chan struct{})}
	c.mu.Lock()
	c.watchers[w] = true
	c.mu.Unlock()
	ticker := time.NewTicker(bookmarkInterval)
	defer ticker.Stop()
	for open := true; open; {
		select {
		case <-w.gone:
			open = false
		case <-reply.gone():
			open = false
		case <-ticker.C:
			c.mu.Lock()
			version := max(c.version, listVersion)
			c.mu.Unlock()
			w.send(c.bookmark(version, false))
		}
	}
	c.mu.Lock()
	delete(c.watchers, w)
	c.mu.Unlock()
}

func (c *collection) openWatches() []*watcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*watcher
	for w := range c.watchers {
		all = append(all, w)
	}
	return all
}

// render adds the next update to out. The object "mark", the last, is not among those that take turns.
func (c *collection) render(out *bytes.Buffer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	round := c.next / (c.count() - 1)
	phase := "Pending"
	if round%2 == 1 {
		phase = "Running"
	}
	i := c.next % (c.count() - 1)
	c.next++
	c.version = max(c.version, listVersion) + 1
	c.update(out, i, c.version, phase, time.Now().UnixNano())
}

func (c *collection) mark() {
	var out bytes.Buffer
	c.mu.Lock()
	c.version = max(c.version, listVersion) + 1
	c.update(&out, c.count()-1, c.version, "Unknown", time.Now().UnixNano())
	c.mu.Unlock()
	c.broadcast(&out)
}

func (c *collection) broadcast(out *bytes.Buffer) {
	for _, w := range c.openWatches() {
		w.send(out.Bytes())
	}
	out.Reset()
}

func (c *collection) burst(count int) map[string]any {
	var out bytes.Buffer
	first := time.Now().UnixNano()
	for range count {
		c.render(&out)
		if out.Len() >= batchBytes {
			c.broadcast(&out)
		}
	}
	c.broadcast(&out)
	return map[string]any{"first": ns(first), "last": ns(time.Now().UnixNano())}
}

func (c *collection) rate(perSecond, count int) map[string]any {
	var out bytes.Buffer
	start := time.Now()
	for i := range count {
		time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(perSecond))))
		c.render(&out)
		c.broadcast(&out)
	}
	return map[string]any{"first": ns(start.UnixNano()), "last": ns(time.Now().UnixNano())}
}

// ns gives nanoseconds as text: beyond 2^53 not every reader of JSON has whole numbers.
func ns(t int64) string {
	return strconv.FormatInt(t, 10)
}

func command(c *collection, words []string) (map[string]any, error) {
	if c == nil || c.count() < 2 && words[0] != "watches" {
		return nil, errors.New("no such kind, or no objects of it")
	}
	first, _ := strconv.Atoi(words[2])
	second, _ := strconv.Atoi(words[3])
	switch {
	case words[0] == "burst" && first > 0:
		return c.burst(first), nil
	case words[0] == "rate" && first > 0 && second > 0:
		return c.rate(first, second), nil
	case words[0] == "mark":
		c.mark()
		return map[string]any{}, nil
	case words[0] == "watches":
		return map[string]any{"watches": len(c.openWatches())}, nil
	}
	return nil, errors.New("no such command")
}
