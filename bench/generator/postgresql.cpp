// PostgreSQL: a table of jobs, taken with FOR UPDATE SKIP LOCKED in a transaction that ends with the DELETE.

#include <cstdio>

#include "generator.hpp"

namespace {

constexpr uint32_t VERSION = 196608;    // of the protocol: 3.0
enum Kind : char { INSERTED, SELECTED, DELETED, GIVEN_UP };

class PostgreSQL : public Protocol {
  public:
    using Protocol::Protocol;

    void prepare() override {
        Connection connection;
        connect(connection, options.hosts[0]);
        log_in(connection);
        define(connection.out, "make", "CREATE TABLE jobs (id bigserial PRIMARY KEY, body text NOT NULL)");
        execute(connection.out, "make");
        sync(connection);
        send_all(connection);
        until_ready(connection);
    }
    void greet(Connection &connection) override {
        log_in(connection);
        std::string most = std::to_string(options.batch);
        if (connection.takes) {
            define(connection.out, "begin", "BEGIN");
            define(connection.out, "commit", "COMMIT");
            define(connection.out, "take", "SELECT id, body FROM jobs ORDER BY id FOR UPDATE SKIP LOCKED LIMIT " + most);
            define(connection.out, "finish", "DELETE FROM jobs WHERE id = ANY($1::bigint[])");
        } else {
            define(connection.out, "put", "INSERT INTO jobs(body) VALUES($1)");
        }
        sync(connection);
        send_all(connection);
        until_ready(connection);
    }
    void put(Connection &connection, uint64_t, std::string_view body) override {
        execute(connection.out, "put", &body);
        sync(connection, INSERTED);
    }
    void take(Connection &connection, int) override {
        connection.batch.clear();
        execute(connection.out, "begin");
        execute(connection.out, "take");
        sync(connection, SELECTED);
    }
    void finish(Connection &connection, std::string_view job) override { connection.batch.emplace_back(job); }
    void finish_batch(Connection &) override {}     // when the SELECT has ended: what came of it is known then

    bool parse(Connection &connection) override {
        Buffer &in = connection.in;
        while (in.size() >= 5) {
            size_t used = 1 + read_32(in.data() + 1);
            if (in.size() < used) break;
            std::string message(in.data(), used);
            in.drop(used);
            if (message[0] == 'E') {
                fprintf(stderr, "postgresql: %.*s\n", static_cast<int>(used) - 5, message.data() + 5);
                return false;
            }
            if (message[0] == 'D') row(connection, message);
            else if (message[0] == 'Z') ready(connection);
        }
        return true;
    }

  private:
    static size_t open(Buffer &out, char kind) {
        size_t at = out.size();
        out.add_byte(kind);
        out.add_32(0);
        return at;
    }
    static void close(Buffer &out, size_t at) { out.set_32(at + 1, out.size() - at - 1); }
    static void add_text(Buffer &out, std::string_view text) {
        out.add(text);
        out.add_byte(0);
    }
    static void define(Buffer &out, std::string_view name, std::string_view statement) {
        size_t at = open(out, 'P');
        add_text(out, name);
        add_text(out, statement);
        out.add_16(0);
        close(out, at);
    }
    static void execute(Buffer &out, std::string_view name, const std::string_view *argument = nullptr) {
        size_t at = open(out, 'B');
        add_text(out, "");
        add_text(out, name);
        out.add_16(0);
        out.add_16(argument ? 1 : 0);
        if (argument) {
            out.add_32(argument->size());
            out.add(*argument);
        }
        out.add_16(0);
        close(out, at);
        at = open(out, 'E');
        add_text(out, "");
        out.add_32(0);
        close(out, at);
    }
    static void sync(Connection &connection) { close(connection.out, open(connection.out, 'S')); }
    static void sync(Connection &connection, Kind answer) {
        sync(connection);
        connection.expected.push_back(answer);
    }
    static void until_ready(Connection &connection) {
        for (char kind = 0; kind != 'Z';) {
            while (connection.in.size() < 5 || connection.in.size() < 1 + read_32(connection.in.data() + 1))
                receive(connection);
            kind = connection.in.data()[0];
            size_t size = read_32(connection.in.data() + 1);
            if (kind == 'E') throw Failure("postgresql: " + std::string(connection.in.data() + 5, size - 4));
            connection.in.drop(size + 1);
        }
    }
    static void log_in(Connection &connection) {
        size_t at = connection.out.size();
        connection.out.add_32(0);
        connection.out.add_32(VERSION);
        for (std::string_view word : {"user", "postgres", "database", "postgres", ""}) add_text(connection.out, word);
        connection.out.set_32(at, connection.out.size() - at);
        send_all(connection);
        until_ready(connection);
    }
    // A row of two columns, id and body, each with its length.
    void row(Connection &connection, const std::string &message) {
        if (read_16(message.data() + 5) != 2) return;
        const char *at = message.data() + 7;
        std::string id(at + 4, read_32(at));
        at += 4 + id.size();
        driver->job_came(connection, id, {at + 4, read_32(at)});
    }
    void ready(Connection &connection) {
        if (connection.expected.empty()) return;
        Kind kind = static_cast<Kind>(connection.expected.front());
        connection.expected.pop_front();
        if (kind == INSERTED) driver->put_answered(connection, connection.puts.front().number, true);
        else if (kind == DELETED) driver->jobs_finished(connection, connection.batch.size());
        else if (kind == SELECTED) selected(connection);
    }
    void selected(Connection &connection) {
        if (!connection.batch.empty()) {
            std::string ids = "{";
            for (const std::string &id : connection.batch) ids += (ids.size() > 1 ? "," : "") + id;
            ids += "}";
            std::string_view argument = ids;
            execute(connection.out, "finish", &argument);
        }
        execute(connection.out, "commit");
        sync(connection, connection.batch.empty() ? GIVEN_UP : DELETED);
        int missing = options.batch - static_cast<int>(connection.batch.size());
        if (missing) driver->jobs_missing(connection, missing);
    }
};

}  // namespace

std::unique_ptr<Protocol> make_postgresql(const Options &options, Driver *driver) {
    return std::make_unique<PostgreSQL>(options, driver);
}
