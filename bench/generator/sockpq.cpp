// sockpqd: PUT, GETB and DONE; answers come in the order of the commands.

#include <cstdlib>

#include "generator.hpp"

namespace {

constexpr const char *TAKE = "GETB jobs EXPIRE 600";
enum Kind : char { PUT_ANSWER, JOB, JOBS, DONE_ANSWER, DONE_ANSWERS };

// Returns the word at this place of a line, counted from 0; empty if there is none.
std::string_view word(std::string_view line, int place) {
    for (; place && !line.empty(); place--) {
        size_t blank = line.find(' ');
        line = blank == line.npos ? std::string_view() : line.substr(blank + 1);
    }
    return line.substr(0, line.find(' '));
}
size_t number(std::string_view text) { return strtoul(std::string(text).c_str(), nullptr, 10); }

class SockPQ : public Protocol {
  public:
    using Protocol::Protocol;

    // With DONE and the next GETB in one packet the next job comes as if it were pushed.
    bool pushes() const override { return one_packet_; }
    void greet(Connection &connection) override {
        if (one_packet_ && connection.takes) take(connection, 1);
    }
    void put(Connection &connection, uint64_t, std::string_view body) override {
        connection.out.add("PUT jobs 0 ");
        connection.out.add_number(body.size());
        connection.out.add("\r\n");
        connection.out.add(body);
        connection.expected.push_back(PUT_ANSWER);
    }
    void take(Connection &connection, int count) override {
        connection.out.add(TAKE);
        if (count > 1) {
            connection.out.add(" COUNT ");
            connection.out.add_number(count);
        }
        connection.out.add("\r\n");
        connection.expected.push_back(count > 1 ? JOBS : JOB);
    }
    void finish(Connection &connection, std::string_view job) override {
        connection.batch.emplace_back(job);
        if (options.batch > 1) return;
        finish_batch(connection);
        if (one_packet_) take(connection, 1);
    }
    void finish_batch(Connection &connection) override {
        if (connection.batch.empty()) return;
        connection.out.add("DONE");
        for (const std::string &job : connection.batch) {
            connection.out.add(" ");
            connection.out.add(job);
        }
        connection.out.add("\r\n");
        connection.expected.push_back(connection.batch.size() > 1 ? DONE_ANSWERS : DONE_ANSWER);
        connection.batch.clear();
    }
    bool parse(Connection &connection) override {
        size_t end;
        while ((end = connection.in.line_end()) != std::string::npos) {
            std::string line(connection.in.data(), end);
            bool good = line.compare(0, 6, "200 OK") == 0;
            std::string code = line.substr(0, 3);
            if (connection.expected.empty() || (!good && code != "404" && code != "500" && code != "503")) {
                fprintf(stderr, "sockpqd: %s\n", line.c_str());
                return false;
            }
            if (!answer(connection, line, end + 2, good)) break;
        }
        return true;
    }

  private:
    // Consumes one answer whose first line takes `used` bytes. Returns false if it is not complete.
    bool answer(Connection &connection, const std::string &line, size_t used, bool good) {
        Buffer &in = connection.in;
        Kind kind = static_cast<Kind>(connection.expected.front());
        std::vector<std::pair<std::string, size_t>> jobs;
        if (good && kind == JOB) jobs.emplace_back(word(line, 3), number(word(line, 5)));
        if (good && (kind == JOBS || kind == DONE_ANSWERS)) {
            for (size_t left = number(word(line, 2)); left; left--) {
                size_t end = in.view().find("\r\n", used);
                if (end == std::string::npos) return false;
                std::string_view one = in.view().substr(used, end - used);
                if (kind == JOBS) jobs.emplace_back(word(one, 1), number(word(one, 3)));
                used = end + 2;
            }
        }
        size_t bodies = used;
        for (auto &job : jobs) used += job.second;
        if (in.size() < used) return false;
        connection.expected.pop_front();
        std::string answered(in.data() + bodies, used - bodies);
        in.drop(used);
        if (kind == PUT_ANSWER) driver->put_answered(connection, connection.puts.front().number, good);
        else if (kind == DONE_ANSWER) driver->jobs_finished(connection, 1);
        else if (kind == DONE_ANSWERS) driver->jobs_finished(connection, number(word(line, 2)));
        else come(connection, jobs, answered);
        return true;
    }
    void come(Connection &connection, const std::vector<std::pair<std::string, size_t>> &jobs,
              std::string_view bodies) {
        for (auto &[id, size] : jobs) {
            driver->job_came(connection, id, bodies.substr(0, size));
            bodies.remove_prefix(size);
        }
        if (static_cast<int>(jobs.size()) < options.batch) driver->jobs_missing(connection, -1);
    }

    bool one_packet_ = getenv("LG_SOCKPQ_PIPE") && options.batch == 1;
};

}  // namespace

std::unique_ptr<Protocol> make_sockpq(const Options &options, Driver *driver) {
    return std::make_unique<SockPQ>(options, driver);
}
