// RabbitMQ by AMQP 0-9-1: a durable quorum queue, publisher confirms, and consumers with a prefetch.

#include <cstdio>

#include "generator.hpp"

namespace {

// Class and method of AMQP in one number.
constexpr uint32_t method(uint16_t of_class, uint16_t number) { return static_cast<uint32_t>(of_class) << 16 | number; }
constexpr uint32_t CONNECTION_START = method(10, 10), CONNECTION_START_OK = method(10, 11),
                   CONNECTION_TUNE = method(10, 30), CONNECTION_TUNE_OK = method(10, 31),
                   CONNECTION_OPEN = method(10, 40), CONNECTION_OPEN_OK = method(10, 41),
                   CONNECTION_CLOSE = method(10, 50), CHANNEL_OPEN = method(20, 10), CHANNEL_OPEN_OK = method(20, 11),
                   CHANNEL_CLOSE = method(20, 40), QUEUE_DECLARE = method(50, 10), QUEUE_DECLARE_OK = method(50, 11),
                   BASIC_QOS = method(60, 10), BASIC_QOS_OK = method(60, 11), BASIC_CONSUME = method(60, 20),
                   BASIC_CONSUME_OK = method(60, 21), BASIC_CANCEL = method(60, 30), BASIC_PUBLISH = method(60, 40),
                   BASIC_DELIVER = method(60, 60), BASIC_ACK = method(60, 80), BASIC_NACK = method(60, 120),
                   CONFIRM_SELECT = method(85, 10), CONFIRM_SELECT_OK = method(85, 11);
constexpr char METHOD = 1, HEADER = 2, BODY = 3;
constexpr unsigned char FRAME_END = 0xCE;
constexpr uint16_t CHANNELS_MAX = 2047, BASIC = 60, HAS_DELIVERY_MODE = 0x1000;
constexpr uint32_t FRAME_BYTES_MAX = 131072;
constexpr unsigned PERSISTENT = 2, DURABLE = 2;

struct Frame {
    char kind;
    uint32_t method;
    std::string content;            // of a method frame without its class and method
};

// What is known of one connection beside what the driver knows.
struct Channel {
    uint64_t published = 0;
    std::deque<uint64_t> unconfirmed;       // in the order of the connection's puts
    std::string tag, body;                  // of the delivery that is coming in
    uint64_t body_bytes = 0;
};

class RabbitMQ : public Protocol {
  public:
    using Protocol::Protocol;

    bool pushes() const override { return true; }
    void prepare() override {
        Connection connection;
        connect(connection, options.hosts[0]);
        log_in(connection);
        Buffer arguments;
        add_short(arguments, "x-queue-type");
        arguments.add("S");
        add_long(arguments, "quorum");
        add_short(arguments, "x-queue-leader-locator");
        arguments.add("S");
        add_long(arguments, "client-local");
        add_short(arguments, "x-quorum-initial-group-size");
        arguments.add("I");
        arguments.add_32(3);
        size_t at = open(connection.out, 1, QUEUE_DECLARE);
        connection.out.add_16(0);
        add_short(connection.out, "jobs");
        connection.out.add_byte(DURABLE);
        add_long(connection.out, arguments.view());
        close(connection.out, at);
        await(connection, QUEUE_DECLARE_OK);
    }
    void greet(Connection &connection) override {
        log_in(connection);
        if (!connection.takes) {
            size_t at = open(connection.out, 1, CONFIRM_SELECT);
            connection.out.add_byte(0);
            close(connection.out, at);
            await(connection, CONFIRM_SELECT_OK);
            return;
        }
        size_t at = open(connection.out, 1, BASIC_QOS);
        connection.out.add_32(0);
        connection.out.add_16(options.batch);
        connection.out.add_byte(0);
        close(connection.out, at);
        await(connection, BASIC_QOS_OK);
        at = open(connection.out, 1, BASIC_CONSUME);
        connection.out.add_16(0);
        add_short(connection.out, "jobs");
        add_short(connection.out, "worker");
        connection.out.add_byte(0);
        connection.out.add_32(0);
        close(connection.out, at);
        await(connection, BASIC_CONSUME_OK);
    }
    void put(Connection &connection, uint64_t, std::string_view body) override {
        Buffer &out = connection.out;
        size_t at = open(out, 1, BASIC_PUBLISH);
        out.add_16(0);
        add_short(out, "");
        add_short(out, "jobs");
        out.add_byte(0);
        close(out, at);
        at = open(out, 1, HEADER);
        out.add_16(BASIC);
        out.add_16(0);
        out.add_64(body.size());
        out.add_16(HAS_DELIVERY_MODE);
        out.add_byte(PERSISTENT);
        close(out, at);
        at = open(out, 1, BODY);
        out.add(body);
        close(out, at);
        Channel &channel = channels_[connection.number];
        channel.unconfirmed.push_back(++channel.published);
    }
    void finish(Connection &connection, std::string_view job) override {
        size_t at = open(connection.out, 1, BASIC_ACK);
        connection.out.add(job);
        connection.out.add_byte(0);
        close(connection.out, at);
        driver->jobs_finished(connection, 1);       // it is not answered
    }
    bool parse(Connection &connection) override {
        Frame frame;
        while (read_frame(connection, frame)) {
            Channel &channel = channels_[connection.number];
            if (frame.kind == METHOD && (frame.method == BASIC_ACK || frame.method == BASIC_NACK)) {
                confirm(connection, read_64(frame.content.data()), frame.content[8] & 1, frame.method == BASIC_ACK);
            } else if (frame.kind == METHOD && frame.method == BASIC_DELIVER) {
                size_t consumer = static_cast<unsigned char>(frame.content[0]);
                channel.tag = frame.content.substr(1 + consumer, 8);
                channel.body.clear();
            } else if (frame.kind == METHOD && (ends(frame) || frame.method == BASIC_CANCEL)) {
                fprintf(stderr, "rabbitmq: %s\n", reason(frame).c_str());
                return false;
            } else if (frame.kind == HEADER) {
                channel.body_bytes = read_64(frame.content.data() + 4);
            } else if (frame.kind == BODY) {
                channel.body += frame.content;
                if (channel.body.size() >= channel.body_bytes) driver->job_came(connection, channel.tag, channel.body);
            }
        }
        return true;
    }

  private:
    static void add_short(Buffer &out, std::string_view text) {
        out.add_byte(text.size());
        out.add(text);
    }
    static void add_long(Buffer &out, std::string_view text) {
        out.add_32(text.size());
        out.add(text);
    }
    static size_t open(Buffer &out, uint16_t channel, char kind) {
        size_t at = out.size();
        out.add_byte(kind);
        out.add_16(channel);
        out.add_32(0);
        return at;
    }
    static size_t open(Buffer &out, uint16_t channel, uint32_t of) {
        size_t at = open(out, channel, METHOD);
        out.add_32(of);
        return at;
    }
    static void close(Buffer &out, size_t at) {
        out.set_32(at + 3, out.size() - at - 7);
        out.add_byte(FRAME_END);
    }
    static bool read_frame(Connection &connection, Frame &frame) {
        Buffer &in = connection.in;
        if (in.size() < 7) return false;
        size_t size = read_32(in.data() + 3);
        if (in.size() < size + 8) return false;
        if (static_cast<unsigned char>(in.data()[7 + size]) != FRAME_END) throw Failure("rabbitmq: a frame has no end");
        frame.kind = in.data()[0];
        size_t skipped = frame.kind == METHOD ? 4 : 0;
        frame.method = skipped ? read_32(in.data() + 7) : 0;
        frame.content.assign(in.data() + 7 + skipped, size - skipped);
        in.drop(size + 8);
        return true;
    }
    static bool ends(const Frame &frame) { return frame.method == CONNECTION_CLOSE || frame.method == CHANNEL_CLOSE; }
    static std::string reason(const Frame &frame) {
        return ends(frame) && frame.content.size() > 3 ? frame.content.substr(3) : "the consumer was cancelled";
    }
    static void await(Connection &connection, uint32_t expected) {
        send_all(connection);
        Frame frame;
        do {
            while (!read_frame(connection, frame)) receive(connection);
            if (frame.kind == METHOD && ends(frame)) throw Failure("rabbitmq: " + reason(frame));
        } while (frame.kind != METHOD || frame.method != expected);
    }
    static void log_in(Connection &connection) {
        Buffer &out = connection.out;
        out.add(std::string_view("AMQP\0\0\x09\x01", 8));
        await(connection, CONNECTION_START);
        Buffer capabilities, properties;
        for (std::string_view name : {"publisher_confirms", "basic.nack", "consumer_cancel_notify"}) {
            add_short(capabilities, name);
            capabilities.add("t\1");
        }
        add_short(properties, "capabilities");
        properties.add("F");
        add_long(properties, capabilities.view());
        size_t at = open(out, 0, CONNECTION_START_OK);
        add_long(out, properties.view());
        add_short(out, "PLAIN");
        add_long(out, std::string_view("\0guest\0guest", 12));
        add_short(out, "en_US");
        close(out, at);
        await(connection, CONNECTION_TUNE);
        at = open(out, 0, CONNECTION_TUNE_OK);
        out.add_16(CHANNELS_MAX);
        out.add_32(FRAME_BYTES_MAX);
        out.add_16(0);
        close(out, at);
        at = open(out, 0, CONNECTION_OPEN);
        add_short(out, "/");
        add_short(out, "");
        out.add_byte(0);
        close(out, at);
        await(connection, CONNECTION_OPEN_OK);
        at = open(out, 1, CHANNEL_OPEN);
        add_short(out, "");
        close(out, at);
        await(connection, CHANNEL_OPEN_OK);
    }
    // Confirms come for one put or for all up to it, and not always in order.
    void confirm(Connection &connection, uint64_t tag, bool up_to, bool accepted) {
        auto &waiting = channels_[connection.number].unconfirmed;
        for (size_t place = 0; place < waiting.size();) {
            if (waiting[place] == tag || (up_to && waiting[place] < tag)) {
                uint64_t number = connection.puts[place].number;
                waiting.erase(waiting.begin() + place);
                driver->put_answered(connection, number, accepted);
            } else if (waiting[place] > tag) {
                return;
            } else {
                place++;
            }
        }
    }

    std::vector<Channel> channels_ = std::vector<Channel>(options.producers + options.workers);
};

}  // namespace

std::unique_ptr<Protocol> make_rabbitmq(const Options &options, Driver *driver) {
    return std::make_unique<RabbitMQ>(options, driver);
}
