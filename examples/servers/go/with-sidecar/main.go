// A game server without any HTTP: it reports its number of players to hookgate-sidecar, which answers hooks for it.
//
// Build and run, in the directory of go.mod (Go 1.22 or newer):
//
//	go build -o game-server ./with-sidecar && ./game-server
//
// GAME_PORT (7777) is the UDP port of the game, SIDECAR_PORT (9358) the UDP port of the sidecar on 127.0.0.1.
package main

import (
	"errors"
	"log"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// reportEvery is the pause between two reports. The sidecar believes a report for 10 s by default, so this allows for
// some that are lost or late.
const reportEvery = 2 * time.Second

// play handles one datagram and returns the reply.
func play(players map[string]bool, datagram string) string {
	words := strings.Fields(datagram)
	if len(words) != 2 {
		return "unknown"
	}
	switch command, name := words[0], words[1]; command {
	case "join":
		players[name] = true
		return "welcome " + name
	case "leave":
		delete(players, name)
		return "bye " + name
	default:
		return "unknown"
	}
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
	// Containers of a pod share their loopback interface. This socket sends all reports. It is not connected: a connected
	// one returns the "connection refused" of an earlier report instead of sending the next one.
	sidecar := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port("SIDECAR_PORT", 9358)}
	reports, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("game on UDP %v, reports to UDP %v", socket.LocalAddr(), sidecar)

	players := map[string]bool{}
	reported, nextReport := -1, time.Now()
	// Sends the number of players if it has changed or the last report is 2 s old.
	report := func() {
		if len(players) == reported && time.Now().Before(nextReport) {
			return
		}
		// A report that cannot be sent is lost, like any datagram. The sidecar gets the next one.
		_, _ = reports.WriteToUDP([]byte(strconv.Itoa(len(players))), sidecar)
		reported, nextReport = len(players), time.Now().Add(reportEvery)
	}

	// The game loop. It also reports, and no other goroutine may: if the game hangs, so do its reports, and the sidecar
	// stops answering. A timer elsewhere would go on to report the last number of a game that is dead.
	buffer := make([]byte, 1<<16)
	for {
		report()
		if err := socket.SetReadDeadline(nextReport); err != nil {
			log.Fatal(err)
		}
		size, player, err := socket.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		if err != nil {
			log.Fatal(err)
		}
		reply := play(players, string(buffer[:size]))
		// Report before the reply: a player who is welcome has been counted.
		report()
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
