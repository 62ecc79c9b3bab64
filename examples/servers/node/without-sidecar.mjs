// A game server that serves the hook endpoint itself: players play over UDP, hooks ask over HTTP.
//
// Run (Node.js 18 or newer, no packages):
//
//     node without-sidecar.mjs
//
// GAME_PORT (7777) is the UDP port of the game, HOOK_PORT (9091) the TCP port of the hook endpoint.

import dgram from 'node:dgram';
import http from 'node:http';
import os from 'node:os';

// The game and the hooks share this state. All code runs in one event loop, so it needs no lock.
const players = new Set();
let draining = false;

// Handles one datagram and returns the reply.
function play(datagram) {
    const [command, name, ...more] = datagram.trim().split(/\s+/);
    if (name === undefined || more.length > 0) return 'unknown';
    switch (command) {
        case 'join':
            if (draining) return 'draining';
            players.add(name);
            return `welcome ${name}`;
        case 'leave':
            players.delete(name);
            return `bye ${name}`;
        default:
            return 'unknown';
    }
}

// Stops new joins. Hooks are retried, so a second call must be harmless.
function drain() {
    draining = true;
    return { draining };
}

// The hook endpoint. A GET never changes the state, so probes, browsers and curious people can do no harm.
const endpoint = new Map([
    ['/players', { method: 'GET', result: () => ({ players: players.size }) }],
    ['/drain', { method: 'POST', result: drain }],
]);

function answer(request, response) {
    const found = endpoint.get(request.url.split('?')[0]);
    const send = (status, body, headers) => {
        response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
        response.end(JSON.stringify(body));
    };
    if (found === undefined) send(404, { error: 'not found' });
    else if (request.method !== found.method) send(405, { error: 'method not allowed' }, { Allow: found.method });
    else send(200, found.result());
    // Reads and drops the body, if there is one.
    request.resume();
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
    const reply = play(datagram.toString());
    // The error is ignored: a reply that cannot be sent is lost, like any datagram.
    game.send(reply, player.port, player.address, () => {});
});
game.bind(port('GAME_PORT', 7777));

// A client that hangs blocks nobody, because nothing here waits for it. The timeouts end its connection.
const hooks = http.createServer({ headersTimeout: 5_000, requestTimeout: 5_000 }, answer);
hooks.listen(port('HOOK_PORT', 9091));
