// What the protocols share: connecting, and the blocking exchange before the first job.

#include <cerrno>

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "generator.hpp"

static constexpr int PATIENCE_S = 30;
static constexpr size_t READ_BYTES = 65536;

void Protocol::connect(Connection &connection, const std::string &address) {
    size_t colon = address.rfind(':');
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(std::stoi(address.substr(colon + 1)));
    if (inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr) != 1) throw Failure("address " + address);
    connection.socket = socket(AF_INET, SOCK_STREAM, 0);
    int on = 1;
    setsockopt(connection.socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    timeval patience{PATIENCE_S, 0};
    setsockopt(connection.socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(connection.socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (::connect(connection.socket, reinterpret_cast<sockaddr *>(&to), sizeof to))
        throw Failure("connect " + address + ": " + strerror(errno));
}

void Protocol::send_all(Connection &connection) {
    while (!connection.out.empty()) {
        ssize_t sent = send(connection.socket, connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
        if (sent <= 0) throw Failure("send");
        connection.out.drop(sent);
    }
}

void Protocol::receive(Connection &connection) {
    ssize_t size = read(connection.socket, connection.in.room(READ_BYTES), READ_BYTES);
    if (size <= 0) throw Failure("read");
    connection.in.wrote(size);
}

std::string Protocol::read_line(Connection &connection) {
    size_t end;
    while ((end = connection.in.line_end()) == std::string::npos) receive(connection);
    std::string line(connection.in.data(), end);
    connection.in.drop(end + 2);
    return line;
}

std::unique_ptr<Protocol> make_protocol(const Options &options, Driver *driver) {
    if (options.system == "sockpq") return make_sockpq(options, driver);
    if (options.system == "rabbit") return make_rabbitmq(options, driver);
    if (options.system == "nats") return make_nats(options, driver);
    if (options.system == "redis") return make_redis(options, driver);
    if (options.system == "postgresql") return make_postgresql(options, driver);
    throw Failure("there is no system " + options.system);
}
