// One run: connections in an epoll loop, what is measured of it, and the figures.

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <map>
#include <set>

#include <dirent.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "generator.hpp"

static constexpr size_t READ_BYTES = 65536;
static constexpr int EVENTS = 256;
static constexpr uint64_t SECOND_NS = 1'000'000'000;
static constexpr uint64_t ASKS_AGAIN_NS = 5'000'000;    // where no job was there
static constexpr double DRAIN_S = 5;                    // for puts in flight, behind the measurement
static constexpr double NEARLY_ALL = 0.97;              // of the jobs that waited: then the workers are done
static constexpr double WARM_SHARE = 0.1;               // of them: then the workers are warm

// What /proc/PID/stat says of a process: its parent, and seconds of processor time with those of ended children.
struct Process {
    int parent = 0;
    double processor_s = 0;
};

static Process process_of(const std::string &number) {
    Process found;
    FILE *file = fopen(("/proc/" + number + "/stat").c_str(), "r");
    if (!file) return found;        // it has ended
    char text[2048];
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    unsigned long user = 0, system = 0;
    long user_of_ended = 0, system_of_ended = 0;
    if (const char *rest = strrchr(text, ')'))
        sscanf(rest + 2, "%*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld", &found.parent, &user, &system,
               &user_of_ended, &system_of_ended);
    found.processor_s = static_cast<double>(user + system + user_of_ended + system_of_ended) / sysconf(_SC_CLK_TCK);
    return found;
}

// Seconds of processor time of these processes and all that they have started.
static double processor_s(const std::vector<int> &processes) {
    std::map<int, Process> all;
    if (DIR *folder = opendir("/proc")) {
        while (dirent *entry = readdir(folder))
            if (isdigit(entry->d_name[0])) all[std::stoi(entry->d_name)] = process_of(entry->d_name);
        closedir(folder);
    }
    std::set<int> counted;
    std::vector<int> waiting = processes;
    double sum = 0;
    while (!waiting.empty()) {
        int number = waiting.back();
        waiting.pop_back();
        if (!counted.insert(number).second) continue;
        sum += all[number].processor_s;
        for (auto &[child, process] : all)
            if (process.parent == number) waiting.push_back(child);
    }
    return sum;
}

// The value at a share of the sorted values, 0 if there are none.
static double percentile(std::vector<uint32_t> &values, double share) {
    if (values.empty()) return 0;
    size_t place = std::min(values.size() - 1, static_cast<size_t>(values.size() * share));
    std::nth_element(values.begin(), values.begin() + place, values.end());
    return values[place];
}

static void print_times(const char *name, std::vector<uint32_t> &times_us) {
    printf(", \"%s\": [%.0f, %.0f, %.0f, %.0f]", name, percentile(times_us, 0.5), percentile(times_us, 0.99),
           percentile(times_us, 0.999), percentile(times_us, 1));
}

struct Counts {
    uint64_t at_ns = 0, put = 0, finished = 0;
    double servers_s = 0, own_s = 0;
};

class Run : public Driver {
  public:
    explicit Run(const Options &options)
        : options_(options), protocol_(make_protocol(options, this)), epoll_(epoll_create1(0)),
          body_(options.bytes, 'x') {
        uint64_t noise = 88172645463325252ull;      // xorshift: bodies that do not compress to nothing
        for (char &byte : body_) {
            noise ^= noise << 13;
            noise ^= noise >> 7;
            noise ^= noise << 17;
            byte = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[noise & 63];
        }
    }

    void execute() {
        connect_all();
        if (options_.mode == "fill") fill();
        else measure();
        report();
    }

    void put_answered(Connection &connection, uint64_t number, bool accepted) override {
        auto &puts = connection.puts;
        auto found = std::find_if(puts.begin(), puts.end(), [&](const Put &put) { return put.number == number; });
        if (found == puts.end()) throw Failure("an answer to a put that is not in flight");
        if (measuring_) put_us_.push_back((now_ns() - found->began_ns) / 1000);
        puts.erase(found);
        in_flight_--;
        (accepted ? accepted_ : refused_)++;
        if (options_.mode != "latency" && may_put()) put(connection);
    }
    void job_came(Connection &connection, std::string_view job, std::string_view body) override {
        if (measuring_ && options_.mode == "latency" && body.size() >= 2 * HEX)
            delivery_us_.push_back((now_ns() - read_hex(body.data() + HEX)) / 1000);
        connection.got++;
        protocol_->finish(connection, job);
        if (!protocol_->pushes() && batch_is_there(connection)) protocol_->finish_batch(connection);
    }
    void jobs_missing(Connection &connection, int count) override {
        connection.missing = count < 0 ? options_.batch - connection.got : connection.missing + count;
        if (!batch_is_there(connection)) return;
        if (connection.got) {
            protocol_->finish_batch(connection);
            take_again(connection);
        } else if (!stopping_) {
            connection.asks_again_ns = now_ns() + ASKS_AGAIN_NS;
            idle_.push_back(&connection);
        }
    }
    void jobs_finished(Connection &connection, int count) override {
        finished_ += count;
        connection.finished += count;
        if (!protocol_->pushes() && batch_is_there(connection)) take_again(connection);
    }

  private:
    bool may_put() const { return !stopping_ && (!options_.count || issued_ < options_.count); }
    bool batch_is_there(const Connection &connection) const {
        return connection.got + connection.missing >= options_.batch;
    }

    void connect_all() {
        for (int number = 0; number < options_.producers + options_.workers; number++) {
            auto connection = std::make_unique<Connection>();
            connection->number = number;
            connection->takes = number >= options_.producers;
            protocol_->connect(*connection, options_.hosts[0]);
            protocol_->greet(*connection);
            fcntl(connection->socket, F_SETFL, O_NONBLOCK);
            watch(connection->socket, connection.get());
            connections_.push_back(std::move(connection));
        }
    }
    void watch(int file, void *data) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.ptr = data;
        epoll_ctl(epoll_, EPOLL_CTL_ADD, file, &event);
    }

    void put(Connection &connection) {
        uint64_t number = static_cast<uint64_t>(connection.number + 1) << 40 | connection.next_put++;
        uint64_t now = now_ns();
        connection.puts.push_back({number, now});
        issued_++;
        in_flight_++;
        write_hex(body_.data(), number);
        write_hex(body_.data() + HEX, now);
        protocol_->put(connection, number, body_);
    }
    void take(Connection &connection) {
        connection.got = connection.missing = connection.finished = 0;
        protocol_->take(connection, options_.batch);
    }
    void take_again(Connection &connection) {
        if (connection.finished >= connection.got && !stopping_) take(connection);
    }

    void start_all() {
        for (auto &connection : connections_) {
            if (connection->takes) {
                if (!protocol_->pushes()) take(*connection);
            } else if (options_.mode != "latency") {
                for (int place = 0; place < options_.in_flight && may_put(); place++) put(*connection);
            }
            flush(*connection);
            if (!connection->in.empty()) {      // what came with the greeting
                protocol_->parse(*connection);
                flush(*connection);
            }
        }
    }

    void flush(Connection &connection) {
        while (!connection.out.empty()) {
            ssize_t sent = send(connection.socket, connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
            if (sent < 0 && errno == EAGAIN) break;
            if (sent < 0) return lose(connection);
            connection.out.drop(sent);
        }
        bool wants = !connection.out.empty();
        if (wants == connection.wants_to_write) return;
        connection.wants_to_write = wants;
        epoll_event event{};
        event.events = wants ? EPOLLIN | EPOLLOUT : EPOLLIN;
        event.data.ptr = &connection;
        epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.socket, &event);
    }
    [[noreturn]] void lose(Connection &connection) {
        throw Failure("connection " + std::to_string(connection.number) + " is lost");
    }

    void turn() {
        epoll_event events[EVENTS];
        int count = epoll_wait(epoll_, events, EVENTS, idle_.empty() ? 20 : 1);
        for (int place = 0; place < count; place++) {
            if (events[place].data.ptr) serve(*static_cast<Connection *>(events[place].data.ptr), events[place].events);
            else put_on_time();
        }
        std::vector<Connection *> idle;
        idle.swap(idle_);
        for (Connection *connection : idle) {
            if (stopping_) continue;
            if (connection->asks_again_ns > now_ns()) idle_.push_back(connection);
            else {
                take(*connection);
                flush(*connection);
            }
        }
    }
    void serve(Connection &connection, uint32_t events) {
        if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
            ssize_t size = read(connection.socket, connection.in.room(READ_BYTES), READ_BYTES);
            if (size == 0 || (size < 0 && errno != EAGAIN)) lose(connection);
            if (size > 0) {
                connection.in.wrote(size);
                if (!protocol_->parse(connection)) lose(connection);
            }
        }
        flush(connection);
    }
    // Puts what is due at the given rate, whether or not earlier ones were answered.
    void put_on_time() {
        uint64_t due;
        if (read(timer_, &due, sizeof due) != sizeof due) return;
        for (; due && !stopping_; due--) put(*connections_[0]);
        flush(*connections_[0]);
    }

    void fill() {
        begin();
        start_all();
        uint64_t until = now_ns() + options_.seconds * SECOND_NS;
        while (accepted_ + refused_ < options_.count && (in_flight_ || !stopping_)) {
            turn();
            if (now_ns() > until) stopping_ = true;
        }
        end();
    }
    void measure() {
        uint64_t began = now_ns();
        if (options_.mode == "latency") {
            timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
            timespec period{static_cast<time_t>(1 / options_.rate), 0};
            period.tv_nsec = static_cast<long>((1 / options_.rate - period.tv_sec) * SECOND_NS);
            itimerspec every{period, period};
            timerfd_settime(timer_, 0, &every, nullptr);
            watch(timer_, nullptr);
        }
        start_all();
        double warm = options_.preloaded * WARM_SHARE, most = options_.preloaded * NEARLY_ALL;
        while (now_ns() - began < options_.warm_s * SECOND_NS && !(options_.preloaded && finished_ >= warm)) turn();
        begin();
        while (now_ns() - before_.at_ns < options_.seconds * SECOND_NS && !(options_.preloaded && finished_ >= most))
            turn();
        end();
        stopping_ = true;
        while (in_flight_ && now_ns() - after_.at_ns < DRAIN_S * SECOND_NS) turn();
    }

    Counts counts() const {
        double own_s = static_cast<double>(clock()) / CLOCKS_PER_SEC;
        return {now_ns(), accepted_, finished_, processor_s(options_.processes), own_s};
    }
    void begin() {
        before_ = counts();
        measuring_ = true;
    }
    void end() {
        after_ = counts();
        measuring_ = false;
    }
    void report() {
        double seconds = (after_.at_ns - before_.at_ns) / static_cast<double>(SECOND_NS);
        uint64_t puts = after_.put - before_.put, finished = after_.finished - before_.finished;
        uint64_t operations = options_.mode == "produce" || options_.mode == "fill" ? puts : finished;
        double of_one = 1e6 / std::max<uint64_t>(operations, 1);
        printf("{\"system\": \"%s\", \"mode\": \"%s\", \"secs\": %.3f, \"ops\": %llu, \"puts\": %llu, \"rate\": %.1f, "
               "\"refused\": %llu, \"srv_us_op\": %.2f, \"lg_us_op\": %.2f",
               options_.system.c_str(), options_.mode.c_str(), seconds, static_cast<unsigned long long>(operations),
               static_cast<unsigned long long>(puts), operations / seconds, static_cast<unsigned long long>(refused_),
               (after_.servers_s - before_.servers_s) * of_one, (after_.own_s - before_.own_s) * of_one);
        print_times("put_us", put_us_);
        print_times("dlv_us", delivery_us_);
        printf("}\n");
    }

    const Options &options_;
    std::unique_ptr<Protocol> protocol_;
    std::vector<std::unique_ptr<Connection>> connections_;
    std::vector<Connection *> idle_;
    int epoll_, timer_ = -1;
    std::string body_;
    bool measuring_ = false, stopping_ = false;
    uint64_t issued_ = 0, in_flight_ = 0, accepted_ = 0, refused_ = 0, finished_ = 0;
    std::vector<uint32_t> put_us_, delivery_us_;
    Counts before_, after_;
};

void run(const Options &options) { Run(options).execute(); }
