// A game server that serves the hook endpoint itself: players play over UDP, hooks ask over HTTP.
//
// Build and run, in the directory of go.mod (Go 1.22 or newer):
//
//	go build -o game-server ./without-sidecar && ./game-server
//
// GAME_PORT (7777) is the UDP port of the game, HOOK_PORT (9091) the TCP port of the hook endpoint.
package main

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// game is the state that the game loop and the HTTP handlers share.
type game struct {
	mutex    sync.Mutex
	players  map[string]bool
	draining bool
}

// play handles one datagram and returns the reply.
func (g *game) play(datagram string) string {
	words := strings.Fields(datagram)
	if len(words) != 2 {
		return "unknown"
	}
	command, name := words[0], words[1]

	g.mutex.Lock()
	defer g.mutex.Unlock()
	switch {
	case command == "join" && g.draining:
		return "draining"
	case command == "join":
		g.players[name] = true
		return "welcome " + name
	case command == "leave":
		delete(g.players, name)
		return "bye " + name
	default:
		return "unknown"
	}
}

func (g *game) count() int {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return len(g.players)
}

// drain stops new joins. Hooks are retried, so a second call must be harmless.
func (g *game) drain() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.draining = true
}

// endpoint answers hooks. The patterns fix the methods: any other method gets 405, any other path 404. In particular, a
// GET never changes the state, so probes, browsers and curious people can do no harm.
func (g *game) endpoint() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /players", func(answer http.ResponseWriter, _ *http.Request) {
		answer.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(answer, `{"players":%d}`, g.count())
	})
	mux.HandleFunc("POST /drain", func(answer http.ResponseWriter, _ *http.Request) {
		g.drain()
		answer.Header().Set("Content-Type", "application/json")
		fmt.Fprint(answer, `{"draining":true}`)
	})
	return mux
}

func main() {
	// Without a handler, the exit code would not be 0.
	ending := make(chan os.Signal, 1)
	signal.Notify(ending, syscall.SIGTERM)
	go func() {
		<-ending
		os.Exit(0)
	}()

	socket, err := net.ListenUDP("udp", &net.UDPAddr{Port: port("GAME_PORT", 7777)})
	if err != nil {
		log.Fatal(err)
	}
	hooks, err := net.Listen("tcp", ":"+strconv.Itoa(port("HOOK_PORT", 9091)))
	if err != nil {
		log.Fatal(err)
	}

	g := &game{players: map[string]bool{}}
	// Each connection has a goroutine of its own, and the timeouts end those of clients that hang.
	server := &http.Server{
		Handler:      g.endpoint(),
		ReadTimeout:  5 * time.Second,
		WriteTimeout: 5 * time.Second,
		IdleTimeout:  time.Minute,
	}
	go func() { log.Fatal(server.Serve(hooks)) }()
	log.Printf("game on UDP %v, hooks on HTTP %v", socket.LocalAddr(), hooks.Addr())

	// The game loop.
	buffer := make([]byte, 1<<16)
	for {
		size, player, err := socket.ReadFromUDPAddrPort(buffer)
		if err != nil {
			log.Fatal(err)
		}
		reply := g.play(string(buffer[:size]))
		// A reply that cannot be sent is lost, like any datagram.
		_, _ = socket.WriteToUDPAddrPort([]byte(reply), player)
	}
}

// port returns the port in an environment variable, or the default.
func port(name string, byDefault int) int {
	text, set := os.LookupEnv(name)
	if !set {
		return byDefault
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil || number == 0 {
		log.Fatalf("%s is %q: use a port, 1 to 65535", name, text)
	}
	return int(number)
}
