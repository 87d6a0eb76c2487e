// SPDX-License-Identifier: Apache-2.0
// The sink over libmosquitto, driven by the publisher's thread alone: the library starts none, and
// calls back only while we call it.
#include <mosquitto.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <iterator>
#include <mutex>
#include <utility>

#include "lib/publish/broker.h"

namespace vartml::publish {
namespace {

// Brokers end connections that have more messages of QoS 2 under way than they allow; Mosquitto's
// default is 20.
constexpr size_t window_of_qos2 = 10;
constexpr int housekeeping_ms = 1000;  // for keep-alive, whose unit is the second
// ours: an address that has not answered for so long leaves the way to the others
constexpr std::chrono::seconds patience{5};

// The library tries the first address of the broker's name alone, such as ::1 of localhost, and
// takes no family. A socket that is bound to any address of a family does the same, and leaves the
// name as it is, which certificates are checked for.
constexpr const char* ways[] = {nullptr, "0.0.0.0", "::"};

struct Destroy {
    void operator()(mosquitto* client) const { mosquitto_destroy(client); }
};

class MqttSink final : public PublishSink {
public:
    explicit MqttSink(const BrokerOptions& options) : options_(options) {}

    Result<void> connect() override;
    bool connected() const override { return connected_; }
    Result<bool> send(const PublishLine& line) override;
    Result<void> work() override;
    Wait wait() const override;
    size_t take_delivered() override;
    std::vector<size_t> take_lost() override { return std::exchange(lost_lines_, {}); }
    void disconnect() override;

private:
    struct OnItsWay {
        int mid = 0;
        bool delivered = false, lost = false;  // lost: by nobody, for good
    };
    Result<void> set_up_client();
    Result<void> begin(unsigned way);
    bool begin_otherwise();
    int loop();
    bool is_answered() const;
    Error failure(int code) const;
    size_t window() const { return options_.qos == 2 ? window_of_qos2 : most_window; }
    void connected_with(int code);
    void delivered(int mid);

    BrokerOptions options_;
    std::unique_ptr<mosquitto, Destroy> client_;
    std::deque<OnItsWay> on_their_way_;
    std::vector<size_t> lost_lines_;   // of what was delivered last
    unsigned way_ = 0, last_way_ = 0;  // index in `ways`: now; that led to the broker last
    unsigned tried_ = 0;               // a bit for each since connect()
    std::chrono::steady_clock::time_point begun_{};
    bool connected_ = false;
    int refused_ = 0;  // the broker's answer, unless it is yes
    bool lost_ = false;
};

Error MqttSink::failure(int code) const {
    const char* text = code == MOSQ_ERR_ERRNO ? std::strerror(errno) : mosquitto_strerror(code);
    return broker_error(options_, text);
}

void MqttSink::connected_with(int code) {
    connected_ = code == 0;
    refused_ = code;
    if (connected_) last_way_ = way_;
}

// The client may call while mosquitto_publish() runs, before it has returned.
void MqttSink::delivered(int mid) {
    const auto it = std::ranges::find(on_their_way_, mid, &OnItsWay::mid);
    if (it != on_their_way_.end()) it->delivered = true;
}

// A new client for each connection: what was under way is ours to send again, in our order.
Result<void> MqttSink::set_up_client() {
    const char* const id = options_.client_id.empty() ? nullptr : options_.client_id.c_str();
    client_.reset(mosquitto_new(id, true, this));
    if (!client_) return failure(MOSQ_ERR_ERRNO);
    mosquitto_connect_callback_set(client_.get(), [](mosquitto*, void* self, int code) {
        static_cast<MqttSink*>(self)->connected_with(code);
    });
    mosquitto_disconnect_callback_set(client_.get(), [](mosquitto*, void* self, int) {
        static_cast<MqttSink*>(self)->lost_ = true;
    });
    mosquitto_publish_callback_set(client_.get(), [](mosquitto*, void* self, int mid) {
        static_cast<MqttSink*>(self)->delivered(mid);
    });
    mosquitto_max_inflight_messages_set(client_.get(), static_cast<unsigned>(window()));
    if (!options_.username.empty()) {
        const int code = mosquitto_username_pw_set(
            client_.get(), options_.username.c_str(),
            options_.password.empty() ? nullptr : options_.password.c_str());
        if (code != MOSQ_ERR_SUCCESS) return failure(code);
    }
    if (options_.tls_ca_file.empty()) return {};
    const auto or_null = [](const std::string& s) { return s.empty() ? nullptr : s.c_str(); };
    const int code =
        mosquitto_tls_set(client_.get(), options_.tls_ca_file.c_str(), nullptr,
                          or_null(options_.tls_cert_file), or_null(options_.tls_key_file), nullptr);
    if (code != MOSQ_ERR_SUCCESS) return failure(code);
    return {};
}

Result<void> MqttSink::begin(unsigned way) {
    way_ = way;
    tried_ |= 1u << way;
    lost_ = false;
    if (auto done = set_up_client(); !done) return done;
    const int code = mosquitto_connect_bind_async(
        client_.get(), options_.address.c_str(), static_cast<int>(options_.port),
        static_cast<int>(options_.keepalive_s), ways[way]);
    if (code == MOSQ_ERR_EAI)
        return broker_error(options_, "no such host is known", ErrorCode::not_found);
    if (code != MOSQ_ERR_SUCCESS) return failure(code);
    begun_ = std::chrono::steady_clock::now();
    return {};
}

Result<void> MqttSink::connect() {
    tried_ = 0;
    auto done = begin(last_way_);
    if (!done && done.error().code == ErrorCode::io && begin_otherwise()) return {};
    return done;
}

// Whether there is a way that was not tried yet, on which a connection begins.
bool MqttSink::begin_otherwise() {
    for (unsigned way = 0; way < std::size(ways); ++way)
        if (!(tried_ >> way & 1) && begin(way)) return true;
    return false;
}

// By the system of the broker, if not by the broker.
bool MqttSink::is_answered() const {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    return getpeername(mosquitto_socket(client_.get()), reinterpret_cast<sockaddr*>(&address),
                       &size) == 0;
}

// mosquitto_loop() would do the same by select(), which takes no descriptors from 1024 on.
int MqttSink::loop() {
    mosquitto* const client = client_.get();
    pollfd ready{mosquitto_socket(client), POLLIN, 0};
    if (ready.fd < 0) return MOSQ_ERR_NO_CONN;
    if (mosquitto_want_write(client)) ready.events |= POLLOUT;
    if (::poll(&ready, 1, 0) < 0) return errno == EINTR ? MOSQ_ERR_SUCCESS : MOSQ_ERR_ERRNO;
    int code = MOSQ_ERR_SUCCESS;
    // A connection that failed is told by writing; what came with it is read first.
    const bool begins = ready.events & POLLOUT && !connected_;
    if (ready.revents & POLLIN || (ready.revents & (POLLERR | POLLHUP) && !begins))
        code = mosquitto_loop_read(client, 1);
    if (code == MOSQ_ERR_SUCCESS && ready.events & POLLOUT &&
        ready.revents & (POLLOUT | POLLERR | POLLHUP))
        code = mosquitto_loop_write(client, 1);
    return code == MOSQ_ERR_SUCCESS ? mosquitto_loop_misc(client) : code;
}

Result<void> MqttSink::work() {
    const int code = loop();
    if (refused_) {
        return broker_error(
            options_, std::string("refused the connection: ") + mosquitto_connack_string(refused_));
    }
    if (code != MOSQ_ERR_SUCCESS || lost_) {
        const Error error = failure(code != MOSQ_ERR_SUCCESS ? code : MOSQ_ERR_CONN_LOST);
        if (!connected_ && begin_otherwise()) return {};
        return error;
    }
    if (!connected_ && std::chrono::steady_clock::now() - begun_ > patience && !is_answered())
        begin_otherwise();
    return {};
}

PublishSink::Wait MqttSink::wait() const {
    return {.fd = mosquitto_socket(client_.get()),
            .read = true,
            .write = mosquitto_want_write(client_.get()),
            .timeout_ms = housekeeping_ms};
}

Result<bool> MqttSink::send(const PublishLine& line) {
    if (on_their_way_.size() >= window() || mosquitto_want_write(client_.get())) return false;
    const std::string topic =
        broker_topic(BrokerKind::mqtt, options_.topic, line.stream, line.model);
    const std::string_view payload = payload_of(line);
    OnItsWay& entry = on_their_way_.emplace_back();
    const int code = mosquitto_publish(client_.get(), &entry.mid, topic.c_str(),
                                       static_cast<int>(payload.size()), payload.data(),
                                       static_cast<int>(options_.qos), false);
    if (code == MOSQ_ERR_SUCCESS) return true;
    if (code == MOSQ_ERR_PAYLOAD_SIZE || code == MOSQ_ERR_OVERSIZE_PACKET ||
        code == MOSQ_ERR_MALFORMED_UTF8 || code == MOSQ_ERR_INVAL) {
        log_lost(options_, line, topic, mosquitto_strerror(code));
        entry.delivered = entry.lost = true;
        return true;
    }
    on_their_way_.pop_back();
    return failure(code);
}

size_t MqttSink::take_delivered() {
    size_t count = 0;
    lost_lines_.clear();
    for (; !on_their_way_.empty() && on_their_way_.front().delivered; ++count) {
        if (on_their_way_.front().lost) lost_lines_.push_back(count);
        on_their_way_.pop_front();
    }
    return count;
}

void MqttSink::disconnect() {
    if (client_ && connected_) mosquitto_disconnect(client_.get());
    client_.reset();
    on_their_way_.clear();
    connected_ = lost_ = false;
    refused_ = 0;
}

}  // namespace

std::unique_ptr<PublishSink> make_mqtt_sink(const BrokerOptions& options) {
    static std::once_flag initialised;
    std::call_once(initialised, mosquitto_lib_init);
    return std::make_unique<MqttSink>(options);
}

}  // namespace vartml::publish
