// The load generator of bench.compare: one thread puts, takes and finishes jobs, and prints a JSON object of figures.
//
// It is compiled because one that is written in Python would be measured itself.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "generator.hpp"

static const char *USAGE = R"(generator SYSTEM MODE -h HOST:PORT,.. [options]

SYSTEM: sockpq, rabbit, nats, redis, postgresql. The first host leads.
MODE: produce, consume, pc (both at once), latency (at a rate), fill (put COUNT jobs), admin (--arg declare).

-P N          connections that put
-C N          connections that take and finish
-W N          puts in flight on each
-B N          jobs taken at once, or prefetched
-s BYTES      of a body
--warm S      before the measurement begins
--dur S       that it takes
--count N     jobs to put (fill)
--preload N   jobs that wait already (consume): it ends when nearly all are finished
--rate N      puts a second (latency)
--pids N,..   the servers' processes, whose processor time is measured

With LG_SOCKPQ_PIPE=1 a worker of sockpq sends DONE and its next GETB in one packet.
)";

[[noreturn]] static void usage() {
    fputs(USAGE, stderr);
    exit(2);
}

static std::vector<std::string> split(const std::string &words) {
    std::vector<std::string> found;
    std::istringstream rest(words);
    for (std::string word; std::getline(rest, word, ',');)
        if (!word.empty()) found.push_back(word);
    return found;
}

static Options read_options(int count, char **words) {
    if (count == 2 && std::string(words[1]) == "--help") {
        fputs(USAGE, stdout);
        exit(0);
    }
    if (count < 3) usage();
    Options options;
    options.system = words[1];
    options.mode = words[2];
    for (int place = 3; place < count; place += 2) {
        std::string name = words[place];
        if (place + 1 == count) usage();
        std::string value = words[place + 1];
        if (name == "-h") options.hosts = split(value);
        else if (name == "-P") options.producers = std::stoi(value);
        else if (name == "-C") options.workers = std::stoi(value);
        else if (name == "-W") options.in_flight = std::stoi(value);
        else if (name == "-B") options.batch = std::stoi(value);
        else if (name == "-s") options.bytes = std::stoi(value);
        else if (name == "--warm") options.warm_s = std::stod(value);
        else if (name == "--dur") options.seconds = std::stod(value);
        else if (name == "--count") options.count = std::stoull(value);
        else if (name == "--preload") options.preloaded = std::stoull(value);
        else if (name == "--rate") options.rate = std::stod(value);
        else if (name == "--arg") options.argument = value;
        else if (name == "--pids")
            for (const std::string &process : split(value)) options.processes.push_back(std::stoi(process));
        else usage();
    }
    if (options.hosts.empty() || options.bytes < static_cast<int>(2 * HEX)) usage();
    return options;
}

int main(int count, char **words) {
    signal(SIGPIPE, SIG_IGN);
    try {
        Options options = read_options(count, words);
        if (options.mode == "admin") make_protocol(options, nullptr)->prepare();
        else run(options);
    } catch (const std::exception &error) {
        fprintf(stderr, "generator: %s\n", error.what());
        return 1;
    }
}
