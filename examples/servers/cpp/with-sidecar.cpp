// A game server without any HTTP: it reports its number of players to hookgate-sidecar, which answers hooks for it.
//
// Build and run (C++17, POSIX sockets, nothing but the standard library):
//
//     g++ -std=c++17 -O2 -Wall -Wextra -Werror -o game-server with-sidecar.cpp && ./game-server
//
// GAME_PORT (7777) is the UDP port of the game, SIDECAR_PORT (9358) the UDP port of the sidecar on 127.0.0.1.

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

// Pause between two reports. The sidecar believes a report for 10 s by default, so this allows for some that are lost
// or late.
constexpr std::chrono::seconds kReportEvery{2};

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

// Returns the socket of the game, on all addresses: of IPv6 and IPv4, or only IPv4 where there is no IPv6.
int game_socket(int port) {
    const int no = 0;
    int fd = socket(AF_INET6, SOCK_DGRAM, 0);
    int bound = -1;
    if (fd >= 0) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
        sockaddr_in6 everywhere{};
        everywhere.sin6_family = AF_INET6;
        everywhere.sin6_addr = in6addr_any;
        everywhere.sin6_port = htons(static_cast<uint16_t>(port));
        bound = bind(fd, reinterpret_cast<sockaddr*>(&everywhere), sizeof everywhere);
    } else {
        fd = socket(AF_INET, SOCK_DGRAM, 0);
        sockaddr_in everywhere{};
        everywhere.sin_family = AF_INET;
        everywhere.sin_addr.s_addr = htonl(INADDR_ANY);
        everywhere.sin_port = htons(static_cast<uint16_t>(port));
        bound = bind(fd, reinterpret_cast<sockaddr*>(&everywhere), sizeof everywhere);
    }
    if (fd < 0 || bound != 0) {
        fail("port " + std::to_string(port));
    }
    return fd;
}

// Sends the number of players to the sidecar.
class Reporter {
public:
    explicit Reporter(int port) : socket_(socket(AF_INET, SOCK_DGRAM, 0)) {
        // Containers of a pod share their loopback interface. This socket sends all reports. It is not connected: a
        // connected one returns the "connection refused" of an earlier report instead of sending the next one.
        sidecar_.sin_family = AF_INET;
        sidecar_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        sidecar_.sin_port = htons(static_cast<uint16_t>(port));
        if (socket_ < 0) {
            fail("socket for reports");
        }
    }

    // Sends the number if it has changed or the last report is 2 s old.
    void report(std::size_t players) {
        const auto number = static_cast<long long>(players);
        if (number == reported_ && Clock::now() < next_) {
            return;
        }
        const std::string text = std::to_string(number);
        // A report that cannot be sent is lost, like any datagram. The sidecar gets the next one.
        (void)sendto(socket_, text.data(), text.size(), 0, reinterpret_cast<const sockaddr*>(&sidecar_), sizeof sidecar_);
        reported_ = number;
        next_ = Clock::now() + kReportEvery;
    }

    // Time until the next report if the number does not change, in ms, rounded up.
    int pause_ms() const {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_ - Clock::now());
        return static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count(), 0));
    }

private:
    int socket_;
    sockaddr_in sidecar_{};
    long long reported_ = -1;
    Clock::time_point next_{};
};

// Handles one datagram and returns the reply.
std::string play(std::set<std::string>& players, const std::string& datagram) {
    std::istringstream words(datagram);
    std::string command, name, more;
    if (!(words >> command >> name) || words >> more) {
        return "unknown";
    }
    if (command == "join") {
        players.insert(name);
        return "welcome " + name;
    }
    if (command == "leave") {
        players.erase(name);
        return "bye " + name;
    }
    return "unknown";
}

}  // namespace

int main() {
    // Process 1 of a container ignores SIGTERM unless it has a handler.
    std::signal(SIGTERM, [](int) { _exit(0); });

    const int socket = game_socket(port("GAME_PORT", 7777));
    Reporter reporter(port("SIDECAR_PORT", 9358));
    std::set<std::string> players;

    // The game loop. It also reports, and no other thread may: if the game hangs, so do its reports, and the sidecar
    // stops answering. A timer elsewhere would go on to report the last number of a game that is dead.
    std::vector<char> buffer(1 << 16);
    while (true) {
        reporter.report(players.size());
        pollfd waited{socket, POLLIN, 0};
        if (poll(&waited, 1, reporter.pause_ms()) <= 0) {
            continue;
        }
        sockaddr_storage player{};
        socklen_t length = sizeof player;
        auto* address = reinterpret_cast<sockaddr*>(&player);
        // The datagram may have been dropped since, for a wrong checksum.
        const ssize_t size = recvfrom(socket, buffer.data(), buffer.size(), MSG_DONTWAIT, address, &length);
        if (size < 0) {
            if (errno == EAGAIN || errno == EINTR) {
                continue;
            }
            fail("game socket");
        }
        const std::string reply = play(players, std::string(buffer.data(), static_cast<std::size_t>(size)));
        // Report before the reply: a player who is welcome has been counted.
        reporter.report(players.size());
        // A reply that cannot be sent is lost, like any datagram.
        sendto(socket, reply.data(), reply.size(), 0, address, length);
    }
}
