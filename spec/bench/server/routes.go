package main

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// reply is where an answer goes, over either version of HTTP. What is written goes out at the latest with flush or end.
// An error says that the client has gone.
type reply interface {
	head(status int, length int) error // length -1: not known yet
	write(data []byte) error
	flush() error
	end() error
	gone() <-chan struct{} // closed when the client has; nil where that shows in errors only
}

const streamBytes = 1 << 20 // of the initial state before a flush

// answer handles one request.
func (s *server) answer(target string, to reply) error {
	where, err := url.ParseRequestURI(target)
	if err != nil {
		return text(to, 400, status(400, "BadRequest"))
	}
	if where.Path == "/version" {
		return text(to, 200, `{"major":"1","minor":"36","gitVersion":"v1.36.3","platform":"linux/amd64"}`)
	}
	if c := s.collectionAt(where.Path); c != nil {
		return c.answer(where.Query(), to)
	}
	if body := discovery(where.Path); body != "" {
		return text(to, 200, body)
	}
	return text(to, 404, status(404, "NotFound"))
}

func text(to reply, code int, body string) error {
	if err := to.head(code, len(body)); err != nil {
		return err
	}
	if err := to.write([]byte(body)); err != nil {
		return err
	}
	return to.end()
}

func status(code int, reason string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"%s","reason":"%s","code":%d}`,
		reason, reason, code)
}

func (s *server) collectionAt(path string) *collection {
	for _, c := range s.world {
		if path == c.kind.path()+"/"+c.kind.plural {
			return c
		}
	}
	return nil
}

// discovery answers /api, /apis and the list of resources of each group version.
func discovery(path string) string {
	switch path {
	case "/api":
		return `{"kind":"APIVersions","versions":["v1"]}`
	case "/apis":
		return `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"bench.perilune","versions":[{"groupVersion":"bench.perilune/v1","version":"v1"}],"preferredVersion":{"groupVersion":"bench.perilune/v1","version":"v1"}}]}`
	}
	var resources []string
	groupVersion := ""
	for _, k := range kinds {
		if path != k.path() {
			continue
		}
		groupVersion = k.apiVersion()
		resources = append(resources, fmt.Sprintf(
			`{"name":"%s","singularName":"%s","namespaced":%t,"kind":"%s","verbs":["get","list","watch"]}`,
			k.plural, strings.ToLower(k.name), k.namespaced, k.name))
	}
	if groupVersion == "" {
		return ""
	}
	return fmt.Sprintf(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"%s","resources":[%s]}`,
		groupVersion, strings.Join(resources, ","))
}

func (c *collection) answer(query url.Values, to reply) error {
	switch {
	case query.Get("watch") != "true" && query.Get("watch") != "1":
		return c.list(query, to)
	case query.Get("sendInitialEvents") == "true":
		return c.stream(to)
	}
	if err := openWatch(to); err != nil {
		return err
	}
	c.watch(to)
	return nil
}

// list: a limit is not heeded with resourceVersion=0, as by the API server's watch cache.
func (c *collection) list(query url.Values, to reply) error {
	first, _ := strconv.Atoi(query.Get("continue"))
	first = max(0, min(first, len(c.items)))
	last := len(c.items)
	if limit, _ := strconv.Atoi(query.Get("limit")); limit > 0 && query.Get("resourceVersion") != "0" {
		last = min(last, first+limit)
	}
	head, items, tail := c.page(first, last)
	if err := to.head(200, len(head)+len(items)+len(tail)); err != nil {
		return err
	}
	for _, part := range [][]byte{head, items, tail} {
		if err := to.write(part); err != nil {
			return err
		}
	}
	return to.end()
}

func openWatch(to reply) error {
	if err := to.head(200, -1); err != nil {
		return err
	}
	return to.flush()
}

// stream sends the initial state as events, and goes on as a watch.
func (c *collection) stream(to reply) error {
	if err := openWatch(to); err != nil {
		return err
	}
	head, batch := c.eventHead("ADDED"), make([]byte, 0, streamBytes+(64<<10))
	for _, item := range c.items {
		batch = append(append(append(batch, head...), c.text[item.start:item.end]...), eventTail...)
		if len(batch) < streamBytes {
			continue
		}
		if err := to.write(batch); err != nil {
			return err
		}
		batch = batch[:0]
	}
	if err := to.write(append(batch, c.bookmark(listVersion, true)...)); err != nil {
		return err
	}
	if err := to.flush(); err != nil {
		return err
	}
	c.watch(to)
	return nil
}
