// A game server without any HTTP: it reports its number of players to hookgate-sidecar, which answers hooks for it.
//
// Run (Node.js 18 or newer, no packages):
//
//     node with-sidecar.mjs
//
// GAME_PORT (7777) is the UDP port of the game, SIDECAR_PORT (9358) the UDP port of the sidecar on 127.0.0.1.

import dgram from 'node:dgram';
import os from 'node:os';

// Pause between two reports. The sidecar believes a report for 10 s by default, so this allows for some that are lost
// or late.
const REPORT_EVERY_MS = 2_000;

const players = new Set();

// Handles one datagram and returns the reply.
function play(datagram) {
    const [command, name, ...more] = datagram.trim().split(/\s+/);
    if (name === undefined || more.length > 0) return 'unknown';
    switch (command) {
        case 'join':
            players.add(name);
            return `welcome ${name}`;
        case 'leave':
            players.delete(name);
            return `bye ${name}`;
        default:
            return 'unknown';
    }
}

// Sends the number of players.
function report() {
    // A report that cannot be sent is lost, like any datagram. The sidecar gets the next one.
    sidecar.send(String(players.size), sidecarPort, '127.0.0.1', () => {});
}

// Returns the port in an environment variable, or the default.
function port(name, byDefault) {
    const number = Number(process.env[name] ?? byDefault);
    if (Number.isInteger(number) && number >= 1 && number <= 65535) return number;
    console.error(`${name} is "${process.env[name]}": use a port, 1 to 65535`);
    process.exit(1);
}

// Process 1 of a container ignores SIGTERM unless it has a handler.
process.on('SIGTERM', () => process.exit(0));

// A socket for IPv6 accepts IPv4, too.
const interfaces = Object.values(os.networkInterfaces()).flat();
const hasIPv6 = interfaces.some((address) => address.family === 'IPv6');
const game = dgram.createSocket(hasIPv6 ? 'udp6' : 'udp4');
game.on('message', (datagram, player) => {
    const before = players.size;
    const reply = play(datagram.toString());
    // Report before the reply: a player who is welcome has been counted.
    if (players.size !== before) report();
    // The error is ignored: a reply that cannot be sent is lost, like any datagram.
    game.send(reply, player.port, player.address, () => {});
});

// Containers of a pod share their loopback interface. This socket sends all reports. It is not connected: a connected one
// returns the "connection refused" of an earlier report instead of sending the next one.
const sidecarPort = port('SIDECAR_PORT', 9358);
const sidecar = dgram.createSocket('udp4');
sidecar.on('error', () => {});

// The timer runs in the event loop of the game, and must never move to a worker thread or another process: if the game
// hangs, so do its reports, and the sidecar stops answering. A timer elsewhere would go on to report the last number of
// a game that is dead.
game.bind(port('GAME_PORT', 7777), () => {
    report();
    setInterval(report, REPORT_EVERY_MS);
});
