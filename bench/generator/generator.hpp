// What all parts of the load generator share: buffers, connections, options, and the two sides of a protocol.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <arpa/inet.h>

// Nanoseconds of the monotonic clock.
inline uint64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// Anything that ends the program with a message.
struct Failure : std::runtime_error {
    using runtime_error::runtime_error;
};

// Bytes that are added at one end and consumed at the other.
class Buffer {
  public:
    // Returns a place for `size` bytes behind the last; `wrote` says how many were written there.
    char *room(size_t size) {
        if (bytes_.size() - end_ < size) {
            memmove(bytes_.data(), bytes_.data() + begin_, end_ - begin_);
            end_ -= begin_;
            begin_ = 0;
            if (bytes_.size() - end_ < size) bytes_.resize(std::max(bytes_.size() * 2, end_ + size));
        }
        return bytes_.data() + end_;
    }
    void wrote(size_t size) { end_ += size; }
    void add(std::string_view text) {
        memcpy(room(text.size()), text.data(), text.size());
        wrote(text.size());
    }
    void add_number(uint64_t number) { add(std::to_string(number)); }
    void add_byte(unsigned value) {
        char byte = static_cast<char>(value);
        add({&byte, 1});
    }
    // In network byte order.
    void add_16(uint16_t value) {
        uint16_t ordered = htons(value);
        add({reinterpret_cast<char *>(&ordered), 2});
    }
    void add_32(uint32_t value) {
        uint32_t ordered = htonl(value);
        add({reinterpret_cast<char *>(&ordered), 4});
    }
    void add_64(uint64_t value) {
        add_32(value >> 32);
        add_32(static_cast<uint32_t>(value));
    }
    // Overwrites four bytes `at` so many behind the first.
    void set_32(size_t at, uint32_t value) {
        uint32_t ordered = htonl(value);
        memcpy(bytes_.data() + begin_ + at, &ordered, 4);
    }
    const char *data() const { return bytes_.data() + begin_; }
    size_t size() const { return end_ - begin_; }
    bool empty() const { return begin_ == end_; }
    std::string_view view() const { return {data(), size()}; }
    // Returns the place of the first CRLF, or npos.
    size_t line_end() const { return view().find("\r\n"); }
    void drop(size_t size) {
        begin_ += size;
        if (begin_ == end_) begin_ = end_ = 0;
    }

  private:
    std::vector<char> bytes_;
    size_t begin_ = 0, end_ = 0;
};

inline uint16_t read_16(const char *at) {
    uint16_t value;
    memcpy(&value, at, 2);
    return ntohs(value);
}
inline uint32_t read_32(const char *at) {
    uint32_t value;
    memcpy(&value, at, 4);
    return ntohl(value);
}
inline uint64_t read_64(const char *at) { return static_cast<uint64_t>(read_32(at)) << 32 | read_32(at + 4); }

// Sixteen hexadecimal digits, with which each body begins: the number of the put, then its time.
constexpr size_t HEX = 16;
inline void write_hex(char *at, uint64_t value) {
    for (int place = HEX - 1; place >= 0; place--, value >>= 4) at[place] = "0123456789abcdef"[value & 15];
}
inline uint64_t read_hex(const char *at) { return std::stoull(std::string(at, HEX), nullptr, 16); }

struct Put {
    uint64_t number, began_ns;
};

// One connection: it puts jobs, or takes and finishes them.
struct Connection {
    int socket = -1;
    int number = 0;
    bool takes = false;
    bool wants_to_write = false;
    Buffer in, out;
    std::deque<Put> puts;           // in flight, in their order
    std::deque<char> expected;      // the kinds of the answers to come, for protocols that answer in order
    uint64_t next_put = 0;
    int got = 0, missing = 0, finished = 0;     // of the batch that was asked for last
    std::vector<std::string> batch;             // jobs to finish together
    uint64_t asks_again_ns = 0;                 // for protocols that do not wait for jobs
};

struct Options {
    std::string system, mode, argument;
    std::vector<std::string> hosts;
    int producers = 0, workers = 0, in_flight = 1, batch = 1, bytes = 100;
    double warm_s = 2, seconds = 10, rate = 100;
    uint64_t count = 0, preloaded = 0;
    std::vector<int> processes;
};

// Who drives a protocol and hears of the answers.
class Driver {
  public:
    virtual ~Driver() = default;
    virtual void put_answered(Connection &, uint64_t number, bool accepted) = 0;
    virtual void job_came(Connection &, std::string_view job, std::string_view body) = 0;
    virtual void jobs_missing(Connection &, int count) = 0;     // -1: the rest of the batch
    virtual void jobs_finished(Connection &, int count) = 0;
};

// How one system is spoken to.
class Protocol {
  public:
    Protocol(const Options &options, Driver *driver) : options(options), driver(driver) {}
    virtual ~Protocol() = default;
    // Blocking: what has to be said before the first job.
    virtual void greet(Connection &) {}
    virtual void put(Connection &, uint64_t number, std::string_view body) = 0;
    // Whether jobs come without being asked for.
    virtual bool pushes() const { return false; }
    virtual void take(Connection &, int) {}
    virtual void finish(Connection &, std::string_view job) = 0;
    virtual void finish_batch(Connection &) {}
    // Reads all complete answers. Returns false, with a line on stderr, when the connection is of no use any more.
    virtual bool parse(Connection &) = 0;
    // Makes what the jobs need, such as a queue.
    virtual void prepare() {}

    void connect(Connection &, const std::string &address);
    static void send_all(Connection &);
    static void receive(Connection &);
    static std::string read_line(Connection &);

  protected:
    const Options &options;
    Driver *driver;
};

std::unique_ptr<Protocol> make_sockpq(const Options &, Driver *);
std::unique_ptr<Protocol> make_rabbitmq(const Options &, Driver *);
std::unique_ptr<Protocol> make_nats(const Options &, Driver *);
std::unique_ptr<Protocol> make_redis(const Options &, Driver *);
std::unique_ptr<Protocol> make_postgresql(const Options &, Driver *);
std::unique_ptr<Protocol> make_protocol(const Options &, Driver *);

// Carries out one of the modes and prints its figures as a JSON object.
void run(const Options &);
