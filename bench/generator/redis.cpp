// Redis as a reliable queue: LPUSH, BRPOPLPUSH into a list of the worker's own, LREM from it.

#include <cstdio>
#include <cstdlib>

#include "generator.hpp"

namespace {

enum Kind : char { PUSHED, POPPED, REMOVED };

class Redis : public Protocol {
  public:
    using Protocol::Protocol;

    void put(Connection &connection, uint64_t, std::string_view body) override {
        say(connection, {"LPUSH", "jobs", body}, PUSHED);
    }
    void take(Connection &connection, int count) override {
        if (count == 1) return say(connection, {"BRPOPLPUSH", "jobs", own_list(connection), "0"}, POPPED);
        for (int place = 0; place < count; place++)
            say(connection, {"RPOPLPUSH", "jobs", own_list(connection)}, POPPED);
    }
    void finish(Connection &connection, std::string_view job) override {
        say(connection, {"LREM", own_list(connection), "-1", job}, REMOVED);
    }
    bool parse(Connection &connection) override {
        Buffer &in = connection.in;
        size_t end;
        while ((end = in.line_end()) != std::string::npos) {
            std::string line(in.data(), end);
            if (line[0] == '-') {
                fprintf(stderr, "redis: %s\n", line.c_str());
                return false;
            }
            long size = line[0] == '$' ? atol(line.c_str() + 1) : -1;
            size_t used = end + 2 + (size < 0 ? 0 : size + 2);
            if (in.size() < used) break;
            std::string body(in.data() + end + 2, size < 0 ? 0 : size);
            Kind kind = static_cast<Kind>(connection.expected.front());
            connection.expected.pop_front();
            in.drop(used);
            if (kind == PUSHED) driver->put_answered(connection, connection.puts.front().number, true);
            else if (kind == REMOVED) driver->jobs_finished(connection, 1);
            else if (size < 0) driver->jobs_missing(connection, 1);
            else driver->job_came(connection, body, body);
        }
        return true;
    }

  private:
    static std::string own_list(const Connection &connection) { return "taken:" + std::to_string(connection.number); }
    static void say(Connection &connection, std::initializer_list<std::string_view> words, Kind answer) {
        connection.out.add("*");
        connection.out.add_number(words.size());
        connection.out.add("\r\n");
        for (std::string_view word : words) {
            connection.out.add("$");
            connection.out.add_number(word.size());
            connection.out.add("\r\n");
            connection.out.add(word);
            connection.out.add("\r\n");
        }
        connection.expected.push_back(answer);
    }
};

}  // namespace

std::unique_ptr<Protocol> make_redis(const Options &options, Driver *driver) {
    return std::make_unique<Redis>(options, driver);
}
