package main

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"strconv"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const frameSize = 16384 // the size that every peer accepts

var errGone = errors.New("stream is gone")

// stream is one request and the means to answer it. Every one of those fails with errGone once the client
// has reset it, the connection has ended or a GOAWAY has given it up.
type stream struct {
	conn    *conn
	id      uint32
	method  string
	path    string // with the query
	url     *url.URL
	query   url.Values
	headers map[string]string
	body    bytes.Buffer
	window  int64           // guarded by conn.mu
	ctx     context.Context // done when the stream has gone
	cancel  context.CancelFunc
}

// frame writes a frame of a stream that still lives; last says that it ends the stream.
func (s *stream) frame(last bool, write func(*http2.Framer) error) error {
	c := s.conn
	return c.locked(func() error {
		if c.streams[s.id] != s {
			return errGone
		}
		if err := write(c.framer); err != nil || !last {
			return err
		}
		return c.drop(s.id)
	})
}

// head sends the status and headers, given as names and values in turn. The answer to HEAD ends with it.
func (s *stream) head(status int, headers ...string) error {
	last := s.method == "HEAD"
	return s.frame(last, func(f *http2.Framer) error {
		c := s.conn
		c.block.Reset()
		c.encoder.WriteField(hpack.HeaderField{Name: ":status", Value: strconv.Itoa(status)})
		for i := 0; i < len(headers); i += 2 {
			c.encoder.WriteField(hpack.HeaderField{Name: headers[i], Value: headers[i+1]})
		}
		return f.WriteHeaders(http2.HeadersFrameParam{
			StreamID: s.id, BlockFragment: c.block.Bytes(), EndHeaders: true, EndStream: last,
		})
	})
}

// send sends a part of the body, as fast as the client's windows allow.
func (s *stream) send(data []byte) error {
	for len(data) > 0 {
		n, err := s.reserve(len(data))
		if err != nil {
			return err
		}
		if err := s.frame(false, func(f *http2.Framer) error { return f.WriteData(s.id, false, data[:n]) }); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// reserve waits until the windows have room, and takes of it.
func (s *stream) reserve(wanted int) (int64, error) {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.streams[s.id] == s {
		if n := min(int64(wanted), frameSize, c.window, s.window); n > 0 {
			c.window -= n
			s.window -= n
			return n, nil
		}
		c.changed.Wait()
	}
	return 0, errGone
}

func (s *stream) end() error {
	return s.frame(true, func(f *http2.Framer) error { return f.WriteData(s.id, true, nil) })
}

func (s *stream) reset(code http2.ErrCode) error {
	return s.frame(true, func(f *http2.Framer) error { return f.WriteRSTStream(s.id, code) })
}
