// A game server that serves the hook endpoint itself: players play over UDP, hooks ask over HTTP.
//
// Build and run (C++17, POSIX sockets, nothing but the standard library):
//
//     g++ -std=c++17 -O2 -Wall -Wextra -Werror -pthread -o game-server without-sidecar.cpp && ./game-server
//
// GAME_PORT (7777) is the UDP port of the game, HOOK_PORT (9091) the TCP port of the hook endpoint.

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

// Time that a client has for its whole request.
constexpr std::chrono::seconds kRequestTime{5};
// Longest request line and headers, in bytes.
constexpr std::size_t kMaxHeadBytes = 8192;
// Connections that are served at once. Further ones are closed.
constexpr int kMaxConnections = 64;

// State that the game loop and the threads of the hook endpoint share.
class Game {
public:
    // Handles one datagram and returns the reply.
    std::string play(const std::string& datagram) {
        std::istringstream words(datagram);
        std::string command, name, more;
        if (!(words >> command >> name) || words >> more) {
            return "unknown";
        }
        const std::lock_guard<std::mutex> lock(mutex_);
        if (command == "join") {
            if (draining_) {
                return "draining";
            }
            players_.insert(name);
            return "welcome " + name;
        }
        if (command == "leave") {
            players_.erase(name);
            return "bye " + name;
        }
        return "unknown";
    }

    std::size_t players() const {
        const std::lock_guard<std::mutex> lock(mutex_);
        return players_.size();
    }

    // Stops new joins. Hooks are retried, so a second call must be harmless.
    void drain() {
        const std::lock_guard<std::mutex> lock(mutex_);
        draining_ = true;
    }

private:
    mutable std::mutex mutex_;
    std::set<std::string> players_;
    bool draining_ = false;
};

[[noreturn]] void fail(const std::string& what) {
    std::cerr << what << ": " << std::strerror(errno) << "\n";
    std::exit(1);
}

// Returns the port in an environment variable, or the default.
int port(const char* name, int by_default) {
    const char* text = std::getenv(name);
    if (text == nullptr) {
        return by_default;
    }
    char* end = nullptr;
    const long number = std::strtol(text, &end, 10);
    if (end == text || *end != '\0' || number < 1 || number > 65535) {
        std::cerr << name << " is \"" << text << "\": use a port, 1 to 65535\n";
        std::exit(1);
    }
    return static_cast<int>(number);
}

// Returns a socket bound to a port on all addresses: of IPv6 and IPv4, or only IPv4 where there is no IPv6.
int bound(int type, int port) {
    const int yes = 1, no = 0;
    sockaddr_in6 everywhere{};
    everywhere.sin6_family = AF_INET6;
    everywhere.sin6_addr = in6addr_any;
    everywhere.sin6_port = htons(static_cast<uint16_t>(port));
    sockaddr_in everywhere4{};
    everywhere4.sin_family = AF_INET;
    everywhere4.sin_addr.s_addr = htonl(INADDR_ANY);
    everywhere4.sin_port = everywhere.sin6_port;

    auto* address = reinterpret_cast<sockaddr*>(&everywhere);
    socklen_t length = sizeof everywhere;
    int fd = socket(AF_INET6, type, 0);
    if (fd >= 0) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    } else {
        fd = socket(AF_INET, type, 0);
        address = reinterpret_cast<sockaddr*>(&everywhere4);
        length = sizeof everywhere4;
    }
    if (type == SOCK_STREAM) {
        // Connections of an earlier run may still be closing.
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    }
    if (fd < 0 || bind(fd, address, length) != 0) {
        fail("port " + std::to_string(port));
    }
    return fd;
}

// Waits until the socket is ready. Returns false at the deadline.
bool ready(int fd, short events, Clock::time_point deadline) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd waited{fd, events, 0};
    return left.count() > 0 && poll(&waited, 1, static_cast<int>(left.count())) > 0;
}

// Reads up to the end of the headers. Returns nothing if the client is too slow, sends too much or hangs up.
std::string read_head(int client, Clock::time_point deadline) {
    std::string head;
    char part[1024];
    while (head.find("\r\n\r\n") == std::string::npos) {
        if (head.size() > kMaxHeadBytes || !ready(client, POLLIN, deadline)) {
            return "";
        }
        const ssize_t size = recv(client, part, sizeof part, 0);
        if (size <= 0) {
            return "";
        }
        head.append(part, static_cast<std::size_t>(size));
    }
    return head;
}

std::string response(const std::string& status, const std::string& json, const std::string& headers = "") {
    return "HTTP/1.1 " + status + "\r\nContent-Type: application/json\r\nContent-Length: " +
           std::to_string(json.size()) + "\r\nConnection: close\r\n" + headers + "\r\n" + json;
}

// Returns the response to a request. A GET never changes the state, so probes, browsers and curious people can do no
// harm.
std::string answer(const std::string& head, Game& game) {
    std::istringstream line(head.substr(0, head.find("\r\n")));
    std::string method, target, version;
    if (!(line >> method >> target >> version) || version.rfind("HTTP/1.", 0) != 0) {
        return response("400 Bad Request", R"({"error":"not an HTTP request"})");
    }
    const std::string path = target.substr(0, target.find('?'));
    if (path == "/players" && method == "GET") {
        return response("200 OK", R"({"players":)" + std::to_string(game.players()) + "}");
    }
    if (path == "/drain" && method == "POST") {
        game.drain();
        return response("200 OK", R"({"draining":true})");
    }
    if (path == "/players" || path == "/drain") {
        const std::string allow = path == "/players" ? "Allow: GET\r\n" : "Allow: POST\r\n";
        return response("405 Method Not Allowed", R"({"error":"method not allowed"})", allow);
    }
    return response("404 Not Found", R"({"error":"not found"})");
}

// Serves one request on a connection.
void converse(int client, Game& game) {
    const auto deadline = Clock::now() + kRequestTime;
    const std::string head = read_head(client, deadline);
    if (head.empty()) {
        return;
    }
    const std::string text = answer(head, game);
    if (send(client, text.data(), text.size(), 0) < 0) {
        return;
    }
    // Reads and drops the body until the client closes: closing with unread data would reset the connection, and the
    // client might lose the response.
    shutdown(client, SHUT_WR);
    char part[1024];
    while (ready(client, POLLIN, deadline) && recv(client, part, sizeof part, 0) > 0) {
    }
}

// Gives each connection a thread, so a slow client blocks nobody.
[[noreturn]] void serve_hooks(int listener, Game& game) {
    static std::atomic<int> connections{0};
    while (true) {
        const int client = accept(listener, nullptr, nullptr);
        if (client < 0) {
            // Most likely out of file descriptors: some will become free.
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
            continue;
        }
        if (connections.fetch_add(1) >= kMaxConnections) {
            close(client);
            connections.fetch_sub(1);
            continue;
        }
        const auto serve = [client, &game] {
            converse(client, game);
            close(client);
            connections.fetch_sub(1);
        };
        try {
            std::thread(serve).detach();
        } catch (const std::system_error&) {
            close(client);
            connections.fetch_sub(1);
        }
    }
}

}  // namespace

int main() {
    // Process 1 of a container ignores SIGTERM unless it has a handler.
    std::signal(SIGTERM, [](int) { _exit(0); });
    // Writing to a client that has gone returns an error instead of a signal.
    std::signal(SIGPIPE, SIG_IGN);

    const int socket = bound(SOCK_DGRAM, port("GAME_PORT", 7777));
    const int listener = bound(SOCK_STREAM, port("HOOK_PORT", 9091));
    if (listen(listener, SOMAXCONN) != 0) {
        fail("hook endpoint");
    }
    // Never destroyed: its threads use it until the process ends.
    Game& game = *new Game;
    std::thread([listener, &game] { serve_hooks(listener, game); }).detach();

    // The game loop.
    std::vector<char> buffer(1 << 16);
    while (true) {
        sockaddr_storage player{};
        socklen_t length = sizeof player;
        auto* address = reinterpret_cast<sockaddr*>(&player);
        const ssize_t size = recvfrom(socket, buffer.data(), buffer.size(), 0, address, &length);
        if (size < 0) {
            if (errno == EINTR) {
                continue;
            }
            fail("game socket");
        }
        const std::string reply = game.play(std::string(buffer.data(), static_cast<std::size_t>(size)));
        // A reply that cannot be sent is lost, like any datagram.
        sendto(socket, reply.data(), reply.size(), 0, address, length);
    }
}
