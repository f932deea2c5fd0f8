package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
)

const outBytes = 256 << 10 // gathered before they are encrypted and written

type server struct {
	tls   *tls.Config
	world map[string]*collection
}

// gathered is a socket whose writes wait for flush once hold is set: TLS would write each of its records of 16 KB by
// itself.
type gathered struct {
	net.Conn
	hold bool
	out  []byte
}

func (g *gathered) Write(data []byte) (int, error) {
	if !g.hold {
		return g.Conn.Write(data)
	}
	g.out = append(g.out, data...)
	return len(data), nil
}

func (g *gathered) flush() error {
	_, err := g.Conn.Write(g.out)
	g.out = g.out[:0]
	return err
}

// secure is a TLS connection that writes much at a time.
type secure struct {
	*tls.Conn
	raw *gathered
	out []byte
}

// room says whether all that was put into out may go on waiting.
func (s *secure) room() bool { return len(s.out) < outBytes }

func (s *secure) flush() error {
	if len(s.out) == 0 {
		return nil
	}
	_, err := s.Conn.Write(s.out)
	s.out = s.out[:0]
	if err != nil {
		return err
	}
	return s.raw.flush()
}

func accept(listener net.Listener, s *server) {
	for {
		raw, err := listener.Accept()
		check(err)
		go s.serve(raw)
	}
}

func (s *server) serve(raw net.Conn) {
	defer raw.Close()
	wire := &gathered{Conn: raw}
	conn := &secure{Conn: tls.Server(wire, s.tls), raw: wire}
	if err := conn.Handshake(); err != nil {
		log.Printf("handshake: %v", err)
		return
	}
	wire.hold = true
	if conn.ConnectionState().NegotiatedProtocol == "h2" {
		serveHTTP2(s, conn)
		return
	}
	serveHTTP1(s, conn)
}

// plain is an answer over HTTP/1.1.
type plain struct {
	conn    *secure
	chunked bool
}

func serveHTTP1(s *server, conn *secure) {
	reader := bufio.NewReader(conn)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil || s.answer(request.RequestURI, &plain{conn: conn}) != nil {
			return
		}
	}
}

func (p *plain) head(status, length int) error {
	p.chunked = length < 0
	size := fmt.Sprintf("Content-Length: %d", length)
	if p.chunked {
		size = "Transfer-Encoding: chunked"
	}
	p.conn.out = fmt.Appendf(p.conn.out, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n%s\r\n\r\n",
		status, strings.ReplaceAll(http.StatusText(status), "\n", ""), size)
	return nil
}

func (p *plain) write(data []byte) error {
	for len(data) > 0 {
		part := data[:min(len(data), outBytes)]
		data = data[len(part):]
		if p.chunked {
			p.conn.out = fmt.Appendf(p.conn.out, "%x\r\n", len(part))
		}
		p.conn.out = append(p.conn.out, part...)
		if p.chunked {
			p.conn.out = append(p.conn.out, "\r\n"...)
		}
		if p.conn.room() {
			continue
		}
		if err := p.flush(); err != nil {
			return err
		}
	}
	return nil
}

func (p *plain) flush() error { return p.conn.flush() }

func (p *plain) end() error {
	if p.chunked {
		p.conn.out = append(p.conn.out, "0\r\n\r\n"...)
	}
	return p.flush()
}

func (p *plain) gone() <-chan struct{} { return nil }
