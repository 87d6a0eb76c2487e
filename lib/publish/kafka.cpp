// SPDX-License-Identifier: Apache-2.0
// The sink over librdkafka, whose own threads talk to the cluster and wake the publisher's. A lost
// cluster ends the producer: what it had is ours to send again, in our order.
#include <librdkafka/rdkafka.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "lib/publish/broker.h"

namespace vartml::publish {
namespace {

// While the cluster is looked for, about which nothing wakes us.
constexpr int looking_ms = 50, housekeeping_ms = 1000;

struct DestroyProducer {
    void operator()(rd_kafka_t* producer) const {
        rd_kafka_purge(producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
        rd_kafka_destroy(producer);
    }
};
struct DestroyConf {
    void operator()(rd_kafka_conf_t* conf) const { rd_kafka_conf_destroy(conf); }
};

class KafkaSink final : public PublishSink {
public:
    explicit KafkaSink(const BrokerOptions& options) : options_(options) {}
    ~KafkaSink() override { disconnect(); }

    Result<void> connect() override;
    bool connected() const override { return connected_; }
    Result<bool> send(const PublishLine& line) override;
    Result<void> work() override;
    Wait wait() const override {
        return {.fd = wake_, .read = true, .timeout_ms = connected_ ? housekeeping_ms : looking_ms};
    }
    size_t take_delivered() override;
    std::vector<size_t> take_lost() override { return std::exchange(lost_lines_, {}); }
    void disconnect() override;

private:
    struct OnItsWay {
        bool delivered = false, lost = false;  // lost: by nobody, for good
        PublishLine line;                      // without text, but for one that cannot be sent
    };
    void failed(rd_kafka_resp_err_t code, const char* reason);
    void reported(const rd_kafka_message_t& message);

    BrokerOptions options_;
    std::unique_ptr<rd_kafka_t, DestroyProducer> producer_;
    int wake_ = -1;
    std::deque<OnItsWay> on_their_way_;
    std::vector<size_t> lost_lines_;  // of what was delivered last
    bool connected_ = false;
    std::string reason_;            // of what happened to a broker last
    std::optional<Error> failure_;  // that ends the connection
};

void KafkaSink::failed(rd_kafka_resp_err_t code, const char* reason) {
    if (code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && code != RD_KAFKA_RESP_ERR__FATAL) {
        reason_ = reason;
        return;
    }
    failure_ = broker_error(options_, reason_.empty() ? reason : reason_);
}

void KafkaSink::reported(const rd_kafka_message_t& message) {
    auto& entry = *static_cast<OnItsWay*>(message._private);
    if (message.err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        entry.delivered = true;
    } else if (message.err == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE) {
        entry.line.text.resize(message.len + 1);
        log_lost(options_, entry.line, rd_kafka_topic_name(message.rkt),
                 rd_kafka_err2str(message.err));
        entry.delivered = entry.lost = true;
    } else if (!failure_) {
        const bool late = message.err == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT;
        failure_ = broker_error(options_, rd_kafka_err2str(message.err),
                                late ? ErrorCode::timeout : ErrorCode::unsupported);
    }
}

Result<void> KafkaSink::connect() {
    disconnect();
    const bool login = !options_.username.empty(), tls = !options_.tls_ca_file.empty();
    const bool literal = options_.address.find(':') != std::string::npos;  // IPv6
    const std::pair<const char*, std::string> settings[] = {
        {"bootstrap.servers", (literal ? '[' + options_.address + ']' : options_.address) + ':' +
                                  std::to_string(options_.port)},
        {"client.id", options_.client_id.empty() ? "vartml" : options_.client_id},
        {"acks", "all"},
        {"enable.idempotence", "true"},  // keeps the order when a part is sent again
        {"linger.ms", "5"},
        {"message.timeout.ms", std::to_string(options_.keepalive_s * 1000)},
        {"socket.connection.setup.timeout.ms", "5000"},
        {"security.protocol", std::string(login ? "sasl_" : "") + (tls ? "ssl" : "plaintext")},
        {"sasl.mechanisms", login ? "PLAIN" : ""},
        {"sasl.username", options_.username},
        {"sasl.password", options_.password},
        {"ssl.ca.location", options_.tls_ca_file},
        {"ssl.endpoint.identification.algorithm", tls ? "https" : ""},  // the default from 2.0 on
        {"ssl.certificate.location", options_.tls_cert_file},
        {"ssl.key.location", options_.tls_key_file},
    };
    std::unique_ptr<rd_kafka_conf_t, DestroyConf> conf(rd_kafka_conf_new());
    char text[512] = "";
    for (const auto& [name, value] : settings) {
        if (value.empty()) continue;
        if (rd_kafka_conf_set(conf.get(), name, value.c_str(), text, sizeof text) !=
            RD_KAFKA_CONF_OK)
            return broker_error(options_, text, ErrorCode::invalid_argument);
    }
    rd_kafka_conf_set_opaque(conf.get(), this);
    rd_kafka_conf_set_log_cb(conf.get(), [](const rd_kafka_t*, int, const char*, const char*) {});
    rd_kafka_conf_set_error_cb(conf.get(), [](rd_kafka_t*, int code, const char* why, void* self) {
        static_cast<KafkaSink*>(self)->failed(static_cast<rd_kafka_resp_err_t>(code), why);
    });
    rd_kafka_conf_set_dr_msg_cb(conf.get(),
                                [](rd_kafka_t*, const rd_kafka_message_t* message, void* self) {
                                    static_cast<KafkaSink*>(self)->reported(*message);
                                });
    producer_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, conf.get(), text, sizeof text));
    if (!producer_) return broker_error(options_, text);
    [[maybe_unused]] const auto* owned = conf.release();  // by the producer
    wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    static constexpr uint64_t one = 1;
    rd_kafka_queue_t* queue = rd_kafka_queue_get_main(producer_.get());
    rd_kafka_queue_io_event_enable(queue, wake_, &one, sizeof one);
    rd_kafka_queue_destroy(queue);
    return {};
}

Result<void> KafkaSink::work() {
    uint64_t wakes;
    [[maybe_unused]] const ssize_t n = ::read(wake_, &wakes, sizeof wakes);
    rd_kafka_poll(producer_.get(), 0);
    if (failure_) return *failure_;
    // What a cluster tells first is who controls it.
    if (!connected_) connected_ = rd_kafka_controllerid(producer_.get(), 0) >= 0;
    return {};
}

Result<bool> KafkaSink::send(const PublishLine& line) {
    if (on_their_way_.size() >= most_window) return false;
    const std::string topic =
        broker_topic(BrokerKind::kafka, options_.topic, line.stream, line.model);
    const std::string_view payload = payload_of(line);
    OnItsWay& entry = on_their_way_.emplace_back();
    // Records of a stream have one key, so that they are in one partition and keep their order.
    const rd_kafka_resp_err_t code = rd_kafka_producev(
        producer_.get(), RD_KAFKA_V_TOPIC(topic.c_str()),
        RD_KAFKA_V_KEY(line.stream.data(), line.stream.size()),
        RD_KAFKA_V_VALUE(const_cast<char*>(payload.data()), payload.size()),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_OPAQUE(&entry), RD_KAFKA_V_END);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return true;
    if (code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE) {
        log_lost(options_, line, topic, rd_kafka_err2str(code));
        entry.delivered = entry.lost = true;
        return true;
    }
    on_their_way_.pop_back();
    if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL) return false;
    return broker_error(options_, rd_kafka_err2str(code), ErrorCode::unsupported);
}

size_t KafkaSink::take_delivered() {
    size_t count = 0;
    lost_lines_.clear();
    for (; !on_their_way_.empty() && on_their_way_.front().delivered; ++count) {
        if (on_their_way_.front().lost) lost_lines_.push_back(count);
        on_their_way_.pop_front();
    }
    return count;
}

void KafkaSink::disconnect() {
    producer_.reset();
    if (wake_ >= 0) ::close(std::exchange(wake_, -1));
    on_their_way_.clear();
    connected_ = false;
    reason_.clear();
    failure_.reset();
}

}  // namespace

std::unique_ptr<PublishSink> make_kafka_sink(const BrokerOptions& options) {
    return std::make_unique<KafkaSink>(options);
}

}  // namespace vartml::publish
