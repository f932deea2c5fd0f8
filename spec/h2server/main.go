// h2server is an HTTP/2 server over TLS for specs of an HTTP client. It does on request what real
// servers do on a bad day: refuse a stream, go away, fall silent, drip, reset. It frames by itself
// (net/http's server refuses no stream on demand) and counts what it has done.
//
//	h2server -dir DIR            serve; prints "listening PORT" when it can be connected to
//	h2server -dir DIR -renew     make new PEM files and end; a running server takes them on SIGHUP, and
//	                             prints "reloaded"
//
// DIR gets, unless they are there: ca.pem and ca.key, cert.pem and key.pem of the server, client.pem
// and client.key of a client named "client". routes.go lists the paths.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

type server struct {
	maxStreams uint32
	tls        atomic.Pointer[tls.Config] // for new connections; replaced on SIGHUP

	mu    sync.Mutex
	stats stats
	seen  map[string]int // requests so far by path and id, for times=N
}

type stats struct {
	Connections     int            `json:"connections"` // ever made
	OpenConnections int            `json:"open_connections"`
	Requests        map[string]int `json:"requests"`   // by path, /stats not among them
	Refused         int            `json:"refused"`    // streams refused on request
	OverLimit       int            `json:"over_limit"` // streams refused beyond the announced limit
	Goaways         int            `json:"goaways"`
	Cancelled       int            `json:"cancelled"` // streams reset by the client
	Pings           int            `json:"pings"`     // sent by the client
}

func (s *server) count(change func(*stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.stats)
}

func main() {
	log.SetFlags(0)
	dir := flag.String("dir", ".", "folder of the PEM files")
	renew := flag.Bool("renew", false, "make new PEM files and end")
	clientCA := flag.String("client-ca", "", "PEM `file` of a CA: only clients with a certificate of it may connect")
	maxStreams := flag.Uint("max-streams", 100, "concurrent streams to announce for each connection")
	lifetime := flag.Duration("lifetime", 15*time.Minute, "end after this long, so that a failed spec leaves no server behind")
	flag.Parse()

	makeCerts(*dir, *renew)
	if *renew {
		return
	}
	s := &server{maxStreams: uint32(*maxStreams), seen: map[string]int{}, stats: stats{Requests: map[string]int{}}}
	check(s.loadCerts(*dir, *clientCA))
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go s.reload(hangups, *dir, *clientCA)
	time.AfterFunc(*lifetime, func() { log.Fatal("lifetime is over") })

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	fmt.Printf("listening %d\n", listener.Addr().(*net.TCPAddr).Port)
	for {
		raw, err := listener.Accept()
		check(err)
		go s.serve(raw)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func (s *server) reload(hangups <-chan os.Signal, dir, clientCA string) {
	for range hangups {
		if err := s.loadCerts(dir, clientCA); err != nil {
			log.Print(err)
			continue
		}
		fmt.Println("reloaded")
	}
}
