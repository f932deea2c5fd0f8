// server replays a cluster for scripts/bench: objects of a seeded generator, rendered before anybody asks, over HTTP/2
// or HTTP/1.1 with TLS. It answers discovery, lists (whole or in pages) and watches (with the initial state where
// asked), and sends updates when told to.
//
//	server -dir DIR [-set plain|random] [-seed N] [-pods N] [-configmaps N] [-secrets N] [-nodes N] [-reports N]
//
// writes DIR/kubeconfig and DIR/ca.pem, prints "listening PORT", and then obeys lines on stdin, each answered by one
// line of JSON:
//
//	burst KIND COUNT         COUNT updates of objects in turn, as fast as all watches of the kind take them
//	rate KIND PER_SECOND N   N updates, evenly spread
//	mark KIND                an update of the object "mark": all that was sent before it has come before it
//	watches KIND             how many watches are open
//
// An update changes resourceVersion, phase, and the annotation bench/sent, which is when it was sent in nanoseconds
// since 1970. With -dump KIND it prints the list of that kind and ends. It ends too when stdin does.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	log.SetFlags(0)
	dir := flag.String("dir", ".", "folder of ca.pem and kubeconfig")
	set := flag.String("set", "plain", "plain, or random: annotations, environment and data are random text")
	seed := flag.Uint64("seed", 1, "of the generator")
	dump := flag.String("dump", "", "print the list of this `kind` and end")
	counts := map[string]*int{}
	for _, k := range kinds {
		counts[k.plural] = flag.Int(k.plural, 0, "how many "+k.plural)
	}
	flag.Parse()

	world := map[string]*collection{}
	for _, k := range kinds {
		world[k.plural] = generate(k, *counts[k.plural], *seed, *set == "random")
	}
	if *dump != "" {
		printList(world[*dump])
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	port := listener.Addr().(*net.TCPAddr).Port
	config := makeCerts(*dir, port)
	go accept(listener, &server{config, world})
	fmt.Printf("listening %d\n", port)
	obey(world)
	os.Remove(filepath.Join(*dir, "kubeconfig"))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func printList(c *collection) {
	out := bufio.NewWriter(os.Stdout)
	head, items, tail := c.page(0, c.count())
	for _, part := range [][]byte{head, items, tail} {
		out.Write(part)
	}
	check(out.Flush())
}

func obey(world map[string]*collection) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := append(strings.Fields(lines.Text()), "", "", "")
		answer, err := command(world[words[1]], words)
		if err != nil {
			answer = map[string]any{"error": err.Error()}
		}
		line, err := json.Marshal(answer)
		check(err)
		fmt.Printf("%s\n", line)
	}
}
