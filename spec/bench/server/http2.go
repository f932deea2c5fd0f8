package main

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"sync"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	firstWindow = 65535
	frameBytes  = 16384 // what a peer takes unless it says more
	frameMost   = 64 << 10
	maxStreams  = 100
)

var errGone = errors.New("the client has gone")

// conn2 is a connection of HTTP/2. One goroutine reads frames; each request has its own to answer.
type conn2 struct {
	server *server
	secure *secure

	mu      sync.Mutex // guards every write and all below
	changed *sync.Cond // a window has grown or a stream has gone
	framer  *http2.Framer
	encoder *hpack.Encoder
	block   bytes.Buffer // what encoder has written
	streams map[uint32]*stream
	window  int64 // what the client takes of all streams together
	initial int64 // window of a new stream
	frame   int   // bytes that the client takes in a frame
}

// stream is one request's answer.
type stream struct {
	conn   *conn2
	id     uint32
	window int64
	left   chan struct{} // closed when the stream has gone
}

func serveHTTP2(s *server, secure *secure) {
	c := &conn2{server: s, secure: secure, streams: map[uint32]*stream{}, window: firstWindow, initial: firstWindow, frame: frameBytes}
	c.changed = sync.NewCond(&c.mu)
	c.encoder = hpack.NewEncoder(&c.block)
	c.framer = http2.NewFramer(c, secure.Conn)
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	defer c.locked(func() error {
		for id := range c.streams {
			c.drop(id)
		}
		return nil
	})
	if c.open() != nil {
		return
	}
	for c.read() == nil {
	}
}

func (c *conn2) open() error {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c.secure, preface); err != nil || string(preface) != http2.ClientPreface {
		return errors.New("no client preface")
	}
	return c.locked(func() error {
		return c.framer.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: maxStreams})
	})
}

// Write is where the framer writes: mu is held, and locked flushes.
func (c *conn2) Write(frame []byte) (int, error) {
	c.secure.out = append(c.secure.out, frame...)
	return len(frame), nil
}

func (c *conn2) locked(change func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := change(); err != nil {
		return err
	}
	return c.secure.flush()
}

// read reads one frame and acts on it; an error ends the connection.
func (c *conn2) read() error {
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
		c.onHeaders(frame)
	case *http2.SettingsFrame:
		return c.onSettings(frame)
	case *http2.WindowUpdateFrame:
		c.onWindowUpdate(frame)
	case *http2.PingFrame:
		if !frame.IsAck() {
			return c.locked(func() error { return c.framer.WritePing(true, frame.Data) })
		}
	case *http2.RSTStreamFrame:
		c.mu.Lock()
		c.drop(frame.StreamID)
		c.mu.Unlock()
	}
	return nil
}

func (c *conn2) onHeaders(frame *http2.MetaHeadersFrame) {
	s := &stream{conn: c, id: frame.StreamID, left: make(chan struct{})}
	c.mu.Lock()
	s.window = c.initial
	c.streams[s.id] = s
	c.mu.Unlock()
	go c.server.answer(frame.PseudoValue("path"), s)
}

func (c *conn2) onSettings(frame *http2.SettingsFrame) error {
	if frame.IsAck() {
		return nil
	}
	return c.locked(func() error {
		if size, ok := frame.Value(http2.SettingHeaderTableSize); ok {
			c.encoder.SetMaxDynamicTableSize(min(size, 4096))
		}
		if size, ok := frame.Value(http2.SettingMaxFrameSize); ok {
			c.frame = min(int(size), frameMost)
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

func (c *conn2) onWindowUpdate(frame *http2.WindowUpdateFrame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if frame.StreamID == 0 {
		c.window += int64(frame.Increment)
	} else if s := c.streams[frame.StreamID]; s != nil {
		s.window += int64(frame.Increment)
	}
	c.changed.Broadcast()
}

// drop: mu is held.
func (c *conn2) drop(id uint32) {
	if s := c.streams[id]; s != nil {
		close(s.left)
		delete(c.streams, id)
		c.changed.Broadcast()
	}
}

func (s *stream) lives() bool { return s.conn.streams[s.id] == s }

func (s *stream) head(status, length int) error {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if !s.lives() {
		return errGone
	}
	c.block.Reset()
	c.encoder.WriteField(hpack.HeaderField{Name: ":status", Value: strconv.Itoa(status)})
	c.encoder.WriteField(hpack.HeaderField{Name: "content-type", Value: "application/json"})
	if length >= 0 {
		c.encoder.WriteField(hpack.HeaderField{Name: "content-length", Value: strconv.Itoa(length)})
	}
	return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: c.block.Bytes(), EndHeaders: true})
}

func (s *stream) write(data []byte) error {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(data) > 0 {
		n, err := s.reserve(len(data))
		if err != nil {
			return err
		}
		c.secure.out = append(c.secure.out, byte(n>>16), byte(n>>8), byte(n), byte(http2.FrameData), 0,
			byte(s.id>>24), byte(s.id>>16), byte(s.id>>8), byte(s.id))
		c.secure.out = append(c.secure.out, data[:n]...)
		data = data[n:]
		if c.secure.room() {
			continue
		}
		if err := c.secure.flush(); err != nil {
			return err
		}
	}
	return nil
}

// reserve waits until the windows have room, and takes of it. mu is held.
func (s *stream) reserve(wanted int) (int, error) {
	c := s.conn
	for s.lives() {
		if n := min(int64(wanted), int64(c.frame), c.window, s.window); n > 0 {
			c.window -= n
			s.window -= n
			return int(n), nil
		}
		if err := c.secure.flush(); err != nil {
			return 0, err
		}
		c.changed.Wait()
	}
	return 0, errGone
}

func (s *stream) flush() error {
	return s.conn.locked(func() error { return nil })
}

func (s *stream) end() error {
	return s.conn.locked(func() error {
		if !s.lives() {
			return errGone
		}
		s.conn.drop(s.id)
		return s.conn.framer.WriteData(s.id, true, nil)
	})
}

func (s *stream) gone() <-chan struct{} { return s.left }
