package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/net/http2"
)

// What each path does. A number that is not given is the one in brackets.
//
//	/ok             answers 200 with the numbers of the connection and of the stream
//	/echo           answers with method, path, headers, body, and the name in the client's certificate
//	/status         code= [200], retry_after= and body= of the answer
//	/big            bytes= [1048576] of "x"
//	/slow           bytes= [1024] of "x" at bytes_per_second= [1024]
//	/watch          lines= [endless] of JSON, one each interval_ms= [100]
//	/hang           never answers
//	/mute           nothing is sent on this connection any more; it stays open
//	/close          the TCP connection is cut
//	/refused        RST_STREAM with REFUSED_STREAM
//	/goaway         answers, then GOAWAY: streams under way end well, later ones are not served
//	/goaway-lost    GOAWAY that gives up this stream, the lost= [1] - 1 before it and all after it
//	/stats          the counts
//
// With times=N any of them does this only for the first N requests of the same path and id=X, and
// answers as /ok from then on. The body of /big, /slow and /watch ends as end= says: "reset" with
// RST_STREAM, "hang" never, "close" with the connection cut, else well.
var routes map[string]func(*stream) error

func init() { // not in the declaration, which would refer to itself
	routes = map[string]func(*stream) error{
		"/ok": ok, "/echo": echo, "/status": status, "/big": large, "/slow": slow, "/watch": watch,
		"/hang": hang, "/mute": mute, "/close": cut, "/refused": refused, "/goaway": goaway,
		"/goaway-lost": goawayLost, "/stats": showStats,
	}
}

func (s *stream) answer() {
	route, found := routes[s.url.Path]
	if !found {
		s.json(404, map[string]any{"error": "no such path", "path": s.path})
		return
	}
	if s.isBeyondTimes() {
		route = ok
	}
	if err := route(s); err != nil {
		s.reset(http2.ErrCodeInternal) // no effect on a stream that has gone
	}
}

// isBeyondTimes counts the request.
func (s *stream) isBeyondTimes() bool {
	server := s.conn.server
	server.mu.Lock()
	defer server.mu.Unlock()
	if s.url.Path != "/stats" {
		server.stats.Requests[s.url.Path]++
	}
	key := s.url.Path + " " + s.query.Get("id")
	server.seen[key]++
	return s.query.Has("times") && server.seen[key] > s.number("times", 0)
}

func (s *stream) number(name string, fallback int) int {
	if n, err := strconv.Atoi(s.query.Get(name)); err == nil {
		return n
	}
	return fallback
}

func (s *stream) json(code int, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return s.reply(code, append(data, '\n'))
}

func (s *stream) reply(code int, body []byte, headers ...string) error {
	headers = append(headers, "content-type", "application/json", "content-length", strconv.Itoa(len(body)))
	if err := s.head(code, headers...); err != nil || s.method == "HEAD" {
		return err
	}
	if err := s.send(body); err != nil {
		return err
	}
	return s.end()
}

// sleep returns early, with an error, when the stream has gone.
func (s *stream) sleep(d time.Duration) error {
	select {
	case <-s.ctx.Done():
		return errGone
	case <-time.After(d):
		return nil
	}
}

func ok(s *stream) error {
	return s.json(200, map[string]any{"ok": true, "connection": s.conn.number, "stream": s.id})
}

func echo(s *stream) error {
	return s.json(200, map[string]any{
		"method": s.method, "path": s.path, "headers": s.headers, "body": s.body.String(), "client": s.conn.client,
	})
}

func status(s *stream) error {
	var headers []string
	if after := s.query.Get("retry_after"); after != "" {
		headers = []string{"retry-after", after}
	}
	return s.reply(s.number("code", 200), []byte(s.query.Get("body")), headers...)
}

// stream sends parts, pause after pause, and ends as the query says; count < 0 is endless.
func (s *stream) stream(count int, pause time.Duration, part func(i int) []byte) error {
	if err := s.head(200, "content-type", "application/json"); err != nil {
		return err
	}
	for i := 1; count < 0 || i <= count; i++ {
		if err := s.send(part(i)); err != nil {
			return err
		}
		if err := s.sleep(pause); err != nil {
			return err
		}
	}
	switch s.query.Get("end") {
	case "reset":
		return s.reset(http2.ErrCodeInternal)
	case "hang":
		return hang(s)
	case "close":
		return cut(s)
	}
	return s.end()
}

func large(s *stream) error {
	return s.stream(1, 0, func(int) []byte { return bytes.Repeat([]byte("x"), s.number("bytes", 1<<20)) })
}

// slow sends ten parts a second, or single bytes where that is too little for ten parts.
func slow(s *stream) error {
	rate := max(1, s.number("bytes_per_second", 1024))
	size := max(1, rate/10)
	total := s.number("bytes", 1024)
	parts := (total + size - 1) / size
	return s.stream(parts, time.Second*time.Duration(size)/time.Duration(rate), func(i int) []byte {
		return bytes.Repeat([]byte("x"), min(size, total-(i-1)*size))
	})
}

func watch(s *stream) error {
	pause := time.Duration(s.number("interval_ms", 100)) * time.Millisecond
	return s.stream(s.number("lines", -1), pause, func(i int) []byte { return fmt.Appendf(nil, "{\"line\":%d}\n", i) })
}

func hang(s *stream) error {
	<-s.ctx.Done()
	return errGone
}

func mute(s *stream) error {
	s.conn.locked(func() error {
		s.conn.muted = true
		return nil
	})
	return hang(s)
}

func cut(s *stream) error {
	return s.conn.tls.NetConn().Close()
}

func refused(s *stream) error {
	s.conn.server.count(func(st *stats) { st.Refused++ })
	return s.reset(http2.ErrCodeRefusedStream)
}

func goaway(s *stream) error {
	if err := s.json(200, map[string]any{"goaway": true}); err != nil {
		return err
	}
	return s.conn.goAway(s.conn.newestStream())
}

func goawayLost(s *stream) error {
	given := uint32(2 * max(1, s.number("lost", 1))) // a client's streams have odd numbers
	return s.conn.goAway(max(s.id, given) - given)
}

func showStats(s *stream) error {
	server := s.conn.server
	server.mu.Lock()
	data, err := json.Marshal(server.stats)
	server.mu.Unlock()
	if err != nil {
		return err
	}
	return s.reply(200, append(data, '\n'))
}
