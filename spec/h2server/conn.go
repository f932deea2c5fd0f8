package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"math"
	"net"
	"net/url"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	maxBody     = 16 << 20
	firstWindow = 65535
	everyStream = math.MaxInt32
)

// conn is one client's connection. One goroutine reads frames; each request has its own to answer.
type conn struct {
	server *server
	number int // counted from 1
	tls    *tls.Conn
	client string // common name in the client's certificate

	mu      sync.Mutex // guards every write and all below
	changed *sync.Cond // a window has grown or a stream has gone
	framer  *http2.Framer
	encoder *hpack.Encoder
	block   bytes.Buffer       // what encoder has written
	streams map[uint32]*stream // those not yet ended
	newest  uint32
	last    uint32 // streams above are not served; everyStream until a GOAWAY
	window  int64  // what the client takes of all streams together
	initial int64  // window of a new stream
	muted   bool   // nothing is written any more
}

func (s *server) serve(raw net.Conn) {
	defer raw.Close()
	c := &conn{
		server:  s,
		tls:     tls.Server(raw, s.tls.Load()),
		streams: map[uint32]*stream{},
		last:    everyStream,
		window:  firstWindow,
		initial: firstWindow,
	}
	c.changed = sync.NewCond(&c.mu)
	c.encoder = hpack.NewEncoder(&c.block)
	c.framer = http2.NewFramer(c, c.tls)
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := c.open(); err != nil {
		log.Printf("handshake: %v", err)
		return
	}
	s.count(func(st *stats) { st.Connections++; st.OpenConnections++; c.number = st.Connections })
	defer s.count(func(st *stats) { st.OpenConnections-- })
	defer c.locked(func() error { return c.dropAbove(0) })
	for c.readFrame() == nil {
	}
}

func (c *conn) open() error {
	if err := c.tls.Handshake(); err != nil {
		return err
	}
	if c.tls.ConnectionState().NegotiatedProtocol != "h2" {
		return errors.New("the client does not offer h2")
	}
	if certs := c.tls.ConnectionState().PeerCertificates; len(certs) > 0 {
		c.client = certs[0].Subject.CommonName
	}
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c.tls, preface); err != nil || string(preface) != http2.ClientPreface {
		return errors.New("no client preface")
	}
	return c.locked(func() error {
		return c.framer.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: c.server.maxStreams})
	})
}

// readFrame reads one frame and acts on it; an error ends the connection.
func (c *conn) readFrame() error {
	frame, err := c.framer.ReadFrame()
	var broken http2.StreamError
	if errors.As(err, &broken) {
		return c.locked(func() error { return c.framer.WriteRSTStream(broken.StreamID, broken.Code) })
	}
	if err != nil {
		return err
	}
	switch frame := frame.(type) {
	case *http2.MetaHeadersFrame:
		return c.onHeaders(frame)
	case *http2.DataFrame:
		return c.onData(frame)
	case *http2.SettingsFrame:
		return c.onSettings(frame)
	case *http2.WindowUpdateFrame:
		c.onWindowUpdate(frame)
	case *http2.PingFrame:
		return c.onPing(frame)
	case *http2.RSTStreamFrame:
		return c.locked(func() error { return c.onReset(frame) })
	}
	return nil
}

func (c *conn) onHeaders(frame *http2.MetaHeadersFrame) error {
	s := &stream{conn: c, id: frame.StreamID, headers: map[string]string{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.method, s.path = frame.PseudoValue("method"), frame.PseudoValue("path")
	for _, field := range frame.RegularFields() {
		s.headers[field.Name] = field.Value
	}
	var err error
	if s.url, err = url.ParseRequestURI(s.path); err != nil {
		return err
	}
	s.query = s.url.Query()
	if accepted, err := c.accept(s); !accepted {
		return err
	}
	if frame.StreamEnded() {
		go s.answer()
	}
	return nil
}

// accept adds a stream, unless it came after a GOAWAY or beyond the limit.
func (c *conn) accept(s *stream) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.id > c.last {
		return false, nil
	}
	if len(c.streams) >= int(c.server.maxStreams) {
		c.server.count(func(st *stats) { st.OverLimit++ })
		return false, c.framer.WriteRSTStream(s.id, http2.ErrCodeRefusedStream)
	}
	s.window = c.initial
	c.streams[s.id] = s
	c.newest = s.id
	return true, nil
}

func (c *conn) onData(frame *http2.DataFrame) error {
	c.mu.Lock()
	s := c.streams[frame.StreamID]
	c.mu.Unlock()
	if s != nil {
		if s.body.Len() < maxBody {
			s.body.Write(frame.Data())
		}
		if frame.StreamEnded() {
			go s.answer()
		}
	}
	if frame.Length == 0 {
		return nil
	}
	return c.locked(func() error {
		if err := c.framer.WriteWindowUpdate(0, frame.Length); err != nil || s == nil || frame.StreamEnded() {
			return err
		}
		return c.framer.WriteWindowUpdate(frame.StreamID, frame.Length)
	})
}

func (c *conn) onSettings(frame *http2.SettingsFrame) error {
	if frame.IsAck() {
		return nil
	}
	return c.locked(func() error {
		if size, ok := frame.Value(http2.SettingHeaderTableSize); ok {
			c.encoder.SetMaxDynamicTableSize(min(size, 4096))
		}
		if initial, ok := frame.Value(http2.SettingInitialWindowSize); ok {
			for _, s := range c.streams {
				s.window += int64(initial) - c.initial
			}
			c.initial = int64(initial)
			c.changed.Broadcast()
		}
		return c.framer.WriteSettingsAck()
	})
}

func (c *conn) onWindowUpdate(frame *http2.WindowUpdateFrame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if frame.StreamID == 0 {
		c.window += int64(frame.Increment)
	} else if s := c.streams[frame.StreamID]; s != nil {
		s.window += int64(frame.Increment)
	}
	c.changed.Broadcast()
}

func (c *conn) onPing(frame *http2.PingFrame) error {
	if frame.IsAck() {
		return nil
	}
	c.server.count(func(st *stats) { st.Pings++ })
	return c.locked(func() error { return c.framer.WritePing(true, frame.Data) })
}

// onReset: mu is held.
func (c *conn) onReset(frame *http2.RSTStreamFrame) error {
	if c.streams[frame.StreamID] != nil {
		c.server.count(func(st *stats) { st.Cancelled++ })
	}
	return c.drop(frame.StreamID)
}

// locked runs a change of what mu guards, writes of frames among them.
func (c *conn) locked(change func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return change()
}

// Write is where the framer writes (mu is held). A muted connection takes everything and sends nothing.
func (c *conn) Write(frame []byte) (int, error) {
	if c.muted {
		return len(frame), nil
	}
	return c.tls.Write(frame)
}

// goAway says that streams above last are not served, and forgets those that it has.
func (c *conn) goAway(last uint32) error {
	c.server.count(func(st *stats) { st.Goaways++ })
	return c.locked(func() error {
		c.last = last
		if err := c.framer.WriteGoAway(last, http2.ErrCodeNo, nil); err != nil {
			return err
		}
		return c.dropAbove(last)
	})
}

func (c *conn) newestStream() uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest
}

// dropAbove, drop and closeWhenIdle: mu is held.
func (c *conn) dropAbove(last uint32) error {
	for id := range c.streams {
		if id > last {
			c.drop(id)
		}
	}
	return c.closeWhenIdle()
}

func (c *conn) drop(id uint32) error {
	if s := c.streams[id]; s != nil {
		s.cancel()
		delete(c.streams, id)
		c.changed.Broadcast()
	}
	return c.closeWhenIdle()
}

// closeWhenIdle ends a connection that goes away, once its streams have, and a second later, as Go's own
// server does. Only our half is closed: to close it whole, with a request of the client's unread, would
// lose answers under way.
func (c *conn) closeWhenIdle() error {
	if len(c.streams) == 0 && c.last != everyStream {
		time.AfterFunc(time.Second, func() { c.tls.CloseWrite() })
	}
	return nil
}
