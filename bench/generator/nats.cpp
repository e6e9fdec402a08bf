// NATS JetStream: a stream JOBS of the subject jobs.q, from which the durable consumer W pulls.

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include <unistd.h>

#include "generator.hpp"

namespace {

constexpr const char *CONNECT =
    "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true,\"lang\":\"c++\","
    "\"version\":\"1\",\"protocol\":1}\r\n";
constexpr int NO_MESSAGES = 404;    // and the codes behind it: the request is over

class Nats : public Protocol {
  public:
    using Protocol::Protocol;

    void greet(Connection &connection) override {
        std::string information = read_line(connection);
        if (information.compare(0, 4, "INFO")) throw Failure("nats: " + information);
        const std::string &inbox = inboxes_[connection.number] = new_inbox();
        connection.out.add(CONNECT);
        connection.out.add("SUB " + inbox + ".p.* 1\r\nSUB " + inbox + ".g 2\r\nSUB " + inbox + ".a 3\r\nPING\r\n");
        send_all(connection);
        for (std::string line; (line = read_line(connection)) != "PONG";)
            if (line[0] == '-') throw Failure("nats: " + line);
    }
    void put(Connection &connection, uint64_t number, std::string_view body) override {
        char digits[HEX];
        write_hex(digits, number);
        publish(connection, "jobs.q", ".p." + std::string(digits, HEX), body);
    }
    void take(Connection &connection, int count) override {
        std::string wanted = count == 1 ? "" : "{\"batch\":" + std::to_string(count) + ",\"expires\":2000000000}";
        publish(connection, "$JS.API.CONSUMER.MSG.NEXT.JOBS.W", ".g", wanted);
    }
    void finish(Connection &connection, std::string_view job) override { publish(connection, job, ".a", ""); }

    bool parse(Connection &connection) override {
        Buffer &in = connection.in;
        size_t end;
        while ((end = in.line_end()) != std::string::npos) {
            std::string line(in.data(), end);
            if (line.compare(0, 3, "MSG") == 0 || line.compare(0, 4, "HMSG") == 0) {
                if (!message(connection, line, end + 2)) break;
                continue;
            }
            in.drop(end + 2);
            if (line == "PING") connection.out.add("PONG\r\n");
            if (line[0] == '-') {
                fprintf(stderr, "nats: %s\n", line.c_str());
                return false;
            }
        }
        return true;
    }

  private:
    static std::string new_inbox() {
        static std::atomic<int> made{0};
        return "_I." + std::to_string(getpid()) + "x" + std::to_string(made++);
    }
    void publish(Connection &connection, std::string_view subject, const std::string &answered_at,
                 std::string_view body) {
        connection.out.add("PUB ");
        connection.out.add(subject);
        connection.out.add(" ");
        connection.out.add(inboxes_[connection.number]);
        connection.out.add(answered_at);
        connection.out.add(" ");
        connection.out.add_number(body.size());
        connection.out.add("\r\n");
        connection.out.add(body);
        connection.out.add("\r\n");
    }
    // MSG subject sid [reply] size, or HMSG subject sid [reply] header-size size. Returns false if it is not complete.
    bool message(Connection &connection, const std::string &line, size_t used) {
        std::vector<std::string> words;
        for (size_t begin = 0; begin < line.size();) {
            size_t end = std::min(line.find(' ', begin), line.size());
            if (end > begin) words.push_back(line.substr(begin, end - begin));
            begin = end + 1;
        }
        bool has_headers = words[0] == "HMSG";
        size_t size = std::stoul(words.back());
        size_t headers = has_headers ? std::stoul(words[words.size() - 2]) : 0;
        if (connection.in.size() < used + size + 2) return false;
        std::string content(connection.in.data() + used, size);
        connection.in.drop(used + size + 2);
        int status = headers >= 12 ? atoi(content.c_str() + 9) : 0;     // NATS/1.0 404
        if (words[2] == "1") {
            bool good = !has_headers && content.find("\"error\"") == std::string::npos;
            driver->put_answered(connection, read_hex(words[1].data() + words[1].size() - HEX), good);
        } else if (words[2] == "3") {
            driver->jobs_finished(connection, 1);
        } else if (status >= NO_MESSAGES && size == headers) {
            driver->jobs_missing(connection, -1);
        } else if (status == 0) {
            driver->job_came(connection, words[3], std::string_view(content).substr(headers));
        }
        return true;
    }

    std::vector<std::string> inboxes_ = std::vector<std::string>(options.producers + options.workers);
};

}  // namespace

std::unique_ptr<Protocol> make_nats(const Options &options, Driver *driver) {
    return std::make_unique<Nats>(options, driver);
}
