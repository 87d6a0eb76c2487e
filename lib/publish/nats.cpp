// SPDX-License-Identifier: Apache-2.0
// The sink over libnats, to JetStream. A record is delivered when the server has stored it. Each
// has an id (Nats-Msg-Id), by which the server knows a record that is sent again: after a lost
// connection the sender does so, in our order, which is why the library's own way back is off.
// Opening a connection waits for the server, so a thread of its own does it; the library's threads
// put answers into an inbox and wake the publisher's.
#include <nats/nats.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "lib/base/file.h"
#include "lib/publish/broker.h"

namespace vartml::publish {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t patience_ms = 2000;  // ours: of a call that waits for the server
constexpr int housekeeping_ms = 1000;
// given: nats-server, errors.json: a message that no stream with this limit will ever take
constexpr int too_large = 10054;
constexpr const char* fallback_stream = "vartml";

template <auto Destroy>
struct Free {
    template <typename T>
    void operator()(T* object) const {
        Destroy(object);
    }
};
using OptionsPtr = std::unique_ptr<natsOptions, Free<natsOptions_Destroy>>;
using ConnectionPtr = std::unique_ptr<natsConnection, Free<natsConnection_Destroy>>;
using SubscriptionPtr = std::unique_ptr<natsSubscription, Free<natsSubscription_Destroy>>;
using MessagePtr = std::unique_ptr<natsMsg, Free<natsMsg_Destroy>>;

struct Answer {
    uint64_t number = 0;
    std::string text;          // JSON
    bool nobody_took = false;  // no stream has the subject
};

// What the library's threads and the publisher's share.
struct Inbox {
    const Fd wake{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    std::mutex mutex;  // guards what follows; nothing is called while it is held
    std::vector<Answer> answers;
    bool ended = false;  // with its connection

    void notify() const {
        const uint64_t one = 1;
        [[maybe_unused]] const ssize_t n = ::write(wake.get(), &one, sizeof one);
    }
};

void on_answer(natsConnection*, natsSubscription*, natsMsg* message, void* closure) {
    const MessagePtr owned(message);
    Inbox& inbox = **static_cast<std::shared_ptr<Inbox>*>(closure);
    const std::string_view subject = natsMsg_GetSubject(message);
    const std::string_view digits = subject.substr(subject.rfind('.') + 1);
    Answer answer;
    std::from_chars(digits.data(), digits.data() + digits.size(), answer.number);
    answer.nobody_took = natsMsg_IsNoResponders(message);
    answer.text.assign(natsMsg_GetData(message),
                       static_cast<size_t>(natsMsg_GetDataLength(message)));
    {
        const std::lock_guard lock(inbox.mutex);
        inbox.answers.push_back(std::move(answer));
    }
    inbox.notify();
}

// After the last answer: the subscription ended, with or before its connection.
void on_end(void* closure) {
    const std::unique_ptr<std::shared_ptr<Inbox>> inbox(
        static_cast<std::shared_ptr<Inbox>*>(closure));
    {
        const std::lock_guard lock((*inbox)->mutex);
        (*inbox)->ended = true;
    }
    (*inbox)->notify();
}

// `a, b:4223` with the port of those that name none, as URLs.
std::vector<std::string> urls_of(const BrokerOptions& options) {
    std::vector<std::string> urls;
    for (std::string& server : servers_of(options.address)) {
        const size_t colons = static_cast<size_t>(std::ranges::count(server, ':'));
        const bool literal = colons > 1 && server[0] != '[';  // IPv6
        if (literal) server = '[' + server + ']';
        if (literal || colons == 0 || server.ends_with(']'))
            server += ':' + std::to_string(options.port);
        urls.push_back("nats://" + server);
    }
    return urls;
}

// What a stream keeps whose records have topics of this pattern.
std::string subjects_of(const std::string& pattern) {
    std::string subjects;
    for (size_t at = 0; at <= pattern.size();) {
        const size_t end = std::min(pattern.find_first_of("/.", at), pattern.size());
        const std::string token = pattern.substr(at, end - at);
        at = end + 1;
        if (!subjects.empty()) subjects += '.';
        const bool varies =
            token.find("{stream}") != token.npos || token.find("{model}") != token.npos;
        subjects += varies ? "*" : broker_topic(BrokerKind::nats, token, "", "");
    }
    return subjects;
}

// The words of the subjects that are the same for all records.
std::string stream_name(const std::string& subjects) {
    std::string name;
    for (size_t at = 0; at < subjects.size();) {
        const size_t end = std::min(subjects.find('.', at), subjects.size());
        const std::string token = subjects.substr(at, end - at);
        at = end + 1;
        if (token != "*") name += (name.empty() ? "" : "_") + token;
    }
    return name.empty() ? fallback_stream : name;
}

// Unique as long as runs are, whose 64 bits are random.
std::string id_of(const PublishLine& line) {
    if (line.run.empty()) return {};
    std::string id = line.run + '-' + std::to_string(line.first);
    if (line.gap) id += '-' + std::to_string(line.last) + "-gap";
    return id;
}

// Threads that nobody waits for but the end of the process: it would take from them the library
// that they are in.
class Strays {
public:
    // `secure`: it may use TLS, which is in use before this call. Whose end comes later.
    template <typename Work>
    static void run(const char* name, bool secure, Work work) {
        static std::once_flag plain_end, secure_end;
        std::call_once(secure ? secure_end : plain_end, [] { std::atexit(wait); });
        add(1);
        try {
            std::thread([name, work = std::move(work)]() mutable {
                pthread_setname_np(pthread_self(), name);
                {
                    Work mine = std::move(work);
                    mine();
                }
                add(-1);
            }).detach();
        } catch (...) {
            add(-1);
            throw;
        }
    }

private:
    struct State {
        std::mutex mutex;
        std::condition_variable changed;
        int running = 0;
    };
    static State& state() {  // never destroyed
        static State* const one = new State;
        return *one;
    }
    static void add(int count) {
        State& s = state();
        const std::lock_guard lock(s.mutex);
        s.running += count;
        s.changed.notify_all();
    }
    static void wait() {
        constexpr std::chrono::seconds longest(10);  // ours: five servers that do not answer
        State& s = state();
        std::unique_lock lock(s.mutex);
        s.changed.wait_for(lock, longest, [&] { return s.running == 0; });
    }
};

// The server, for the publisher's thread and for the one that connects.
class Server {
public:
    explicit Server(const BrokerOptions& options) : options_(options) {}

    // Errors: those of broker_error().
    Result<OptionsPtr> make_options() const;
    Result<ConnectionPtr> open(natsOptions* made, bool stream_is_known) const;
    bool is_secure() const { return !options_.tls_ca_file.empty(); }
    Error failure(natsStatus status) const;
    const BrokerOptions& options() const { return options_; }
    const std::string& stream() const { return stream_; }

private:
    natsStatus set_up(natsOptions* options) const;
    Result<void> make_stream(natsConnection* connection) const;

    const BrokerOptions options_;
    const std::string subjects_ = subjects_of(options_.topic), stream_ = stream_name(subjects_);
};

// A connection that is being made, on a thread that nobody waits for: a server that does not answer
// holds it for seconds. Whoever has this last ends it.
struct Opening {
    std::atomic<bool> done{false};
    Result<ConnectionPtr> result = ConnectionPtr();  // once it is done
};

class NatsSink final : public PublishSink {
public:
    explicit NatsSink(const BrokerOptions& options)
        : server_(std::make_shared<const Server>(options)), options_(server_->options()) {}
    ~NatsSink() override { disconnect(); }

    Result<void> connect() override;
    bool connected() const override { return subscription_ != nullptr; }
    Result<bool> send(const PublishLine& line) override;
    Result<void> work() override;
    Wait wait() const override {
        return {
            .fd = inbox_ ? inbox_->wake.get() : -1, .read = true, .timeout_ms = housekeeping_ms};
    }
    size_t take_delivered() override;
    std::vector<size_t> take_lost() override { return std::exchange(lost_lines_, {}); }
    void disconnect() override;

private:
    struct OnItsWay {
        bool delivered = false, lost = false;  // lost: by nobody, for good
        Clock::time_point sent;
        PublishLine line;  // without text
        size_t bytes = 0;
    };
    Error failure(natsStatus status) const { return server_->failure(status); }
    Result<void> subscribe();
    Result<void> read(const Answer& answer);

    const std::shared_ptr<const Server> server_;
    const BrokerOptions& options_;  // of the server
    std::shared_ptr<Inbox> inbox_;  // of this connection
    std::shared_ptr<Opening> opening_;
    ConnectionPtr connection_;
    SubscriptionPtr subscription_;  // ends first
    std::string reply_;
    std::deque<OnItsWay> on_their_way_;
    std::vector<size_t> lost_lines_;  // of what was delivered last
    uint64_t first_number_ = 0;       // of the oldest on its way
    bool stream_is_known_ = false;    // it took our last record
};

Error Server::failure(natsStatus status) const {
    natsStatus last = NATS_OK;
    const char* const detail = nats_GetLastError(&last);
    std::string text = natsStatus_GetText(status);
    if (last == status && detail && *detail) text += std::string(": ") + detail;
    return broker_error(options_, text);
}

natsStatus Server::set_up(natsOptions* options) const {
    const std::vector<std::string> urls = urls_of(options_);
    std::vector<const char*> servers;
    for (const std::string& url : urls) servers.push_back(url.c_str());
    const auto or_null = [](const std::string& s) { return s.empty() ? nullptr : s.c_str(); };
    natsStatus status = natsOptions_SetServers(options, servers.data(), int(servers.size()));
    const auto then = [&status](natsStatus next) {
        if (status == NATS_OK) status = next;
    };
    then(natsOptions_SetName(options,
                             options_.client_id.empty() ? "vartml" : options_.client_id.c_str()));
    then(natsOptions_SetTimeout(options, patience_ms));
    then(natsOptions_SetWriteDeadline(options, patience_ms));
    then(natsOptions_SetAllowReconnect(options, false));
    // Two pings without an answer end the connection.
    then(natsOptions_SetPingInterval(options, int64_t(options_.keepalive_s) * 1000 / 2));
    then(natsOptions_SetMaxPingsOut(options, 2));
    // The library reports faults through return values too, and writes them to standard error else.
    then(natsOptions_SetErrorHandler(
        options, [](natsConnection*, natsSubscription*, natsStatus, void*) {}, nullptr));
    if (!options_.username.empty())
        then(
            natsOptions_SetUserInfo(options, options_.username.c_str(), options_.password.c_str()));
    if (!options_.credentials_file.empty())
        then(natsOptions_SetUserCredentialsFromFiles(options, options_.credentials_file.c_str(),
                                                     nullptr));
    if (options_.tls_ca_file.empty()) return status;
    then(natsOptions_SetSecure(options, true));
    then(natsOptions_LoadCATrustedCertificates(options, options_.tls_ca_file.c_str()));
    if (!options_.tls_cert_file.empty())
        then(natsOptions_LoadCertificatesChain(options, or_null(options_.tls_cert_file),
                                               or_null(options_.tls_key_file)));
    return status;
}

Result<OptionsPtr> Server::make_options() const {
    natsOptions* made = nullptr;
    natsStatus status = natsOptions_Create(&made);
    OptionsPtr options(made);
    if (status == NATS_OK) status = set_up(made);
    if (status != NATS_OK) return failure(status);
    return options;
}

Result<ConnectionPtr> Server::open(natsOptions* made, bool stream_is_known) const {
    natsConnection* connection = nullptr;
    const natsStatus status = natsConnection_Connect(&connection, made);
    if (status != NATS_OK) return failure(status);
    ConnectionPtr owned(connection);
    if (!stream_is_known)
        if (auto done = make_stream(connection); !done) return done.error();
    return owned;
}

// Where no stream keeps our subjects. One of this name, or one of other subjects that has ours, is
// somebody's choice; a server that does not answer may have one that this user may not ask for.
Result<void> Server::make_stream(natsConnection* connection) const {
    jsOptions options;
    jsOptions_Init(&options);
    options.Wait = patience_ms;
    jsCtx* context = nullptr;
    natsStatus status = natsConnection_JetStream(&context, connection, &options);
    const char* subjects[] = {subjects_.c_str()};
    jsStreamConfig config;
    jsStreamConfig_Init(&config);
    config.Name = stream_.c_str();
    config.Subjects = subjects;
    config.SubjectsLen = 1;
    config.Storage = js_FileStorage;
    jsErrCode code = {};
    if (status == NATS_OK) status = js_AddStream(nullptr, context, &config, nullptr, &code);
    jsCtx_Destroy(context);
    if (status == NATS_OK || status == NATS_TIMEOUT || code == JSStreamNameExistErr ||
        code == JSStreamSubjectOverlapErr)
        return {};
    Error error = failure(status);
    error.message += "; no stream of JetStream keeps subject '" + subjects_ +
                     "', and none can be made: let the server have JetStream (-js) and this user "
                     "its rights, or make the stream beforehand";
    return error;
}

Result<void> NatsSink::connect() {
    disconnect();
    inbox_ = std::make_shared<Inbox>();
    if (!inbox_->wake) return broker_error(options_, "no descriptor is left for its answers");
    auto options = server_->make_options();
    if (!options) return options.error();
    opening_ = std::make_shared<Opening>();
    Strays::run("vartml-nats", server_->is_secure(),
                [server = server_, opening = opening_, inbox = inbox_, known = stream_is_known_,
                 made = std::move(*options)] {
                    opening->result = server->open(made.get(), known);
                    opening->done = true;
                    inbox->notify();
                });
    return {};
}

Result<void> NatsSink::subscribe() {
    natsInbox* prefix = nullptr;
    natsStatus status = natsInbox_Create(&prefix);
    if (status != NATS_OK) return failure(status);
    reply_ = std::string(prefix) + '.';
    natsInbox_Destroy(prefix);
    auto closure = std::make_unique<std::shared_ptr<Inbox>>(inbox_);
    natsSubscription* subscription = nullptr;
    status = natsConnection_Subscribe(&subscription, connection_.get(), (reply_ + '*').c_str(),
                                      on_answer, closure.get());
    if (status != NATS_OK) return failure(status);
    subscription_.reset(subscription);
    // No answer can have come: nothing was asked.
    status = natsSubscription_SetOnCompleteCB(subscription, on_end, closure.get());
    if (status == NATS_OK) {
        [[maybe_unused]] const auto* owned = closure.release();  // by on_end()
        return {};
    }
    // The connection had ended already, and with it the thread that would have called.
    subscription_.reset();
    return failure(status);
}

// What became of a record. An error is one that ends the connection.
Result<void> NatsSink::read(const Answer& answer) {
    if (answer.number < first_number_ || answer.number - first_number_ >= on_their_way_.size())
        return {};
    OnItsWay& entry = on_their_way_[answer.number - first_number_];
    if (answer.nobody_took) {
        const std::string subject =
            broker_topic(BrokerKind::nats, options_.topic, entry.line.stream, entry.line.model);
        stream_is_known_ = false;
        return broker_error(options_,
                            "no stream of JetStream keeps subject '" + subject + "', nor can '" +
                                server_->stream() +
                                "' be made for it: give a stream this subject, or set "
                                "another topic",
                            ErrorCode::not_found);
    }
    const auto json = nlohmann::json::parse(answer.text, nullptr, false);
    if (!json.is_object()) return {};
    // Whoever hears the record may answer it: what stored it says where, or that it did not.
    const auto member = [](const nlohmann::json& of, const char* name, auto is) {
        const auto found = of.is_object() ? of.find(name) : of.end();
        return found != of.end() && ((*found).*is)();
    };
    using Json = nlohmann::json;
    const auto error = json.find("error");
    if (error == json.end()) {
        if (!member(json, "stream", &Json::is_string) ||
            !member(json, "seq", &Json::is_number_integer))
            return {};
        entry.delivered = true;
        stream_is_known_ = true;
        return {};
    }
    if (!member(*error, "err_code", &Json::is_number_integer)) return {};
    const std::string why = member(*error, "description", &Json::is_string)
                                ? (*error)["description"].get<std::string>()
                                : error->dump();
    if ((*error)["err_code"].get<int64_t>() == too_large) {
        entry.line.text.resize(entry.bytes);
        log_lost(
            options_, entry.line,
            broker_topic(BrokerKind::nats, options_.topic, entry.line.stream, entry.line.model),
            why);
        entry.delivered = entry.lost = true;
        return {};
    }
    return broker_error(options_, "does not store a record: " + why, ErrorCode::unsupported);
}

Result<void> NatsSink::work() {
    uint64_t wakes;
    [[maybe_unused]] const ssize_t n = ::read(inbox_->wake.get(), &wakes, sizeof wakes);
    if (opening_) {
        if (!opening_->done) return {};
        auto opened = std::move(std::exchange(opening_, nullptr)->result);
        if (!opened) return opened.error();
        connection_ = std::move(*opened);
        return subscribe();
    }
    std::vector<Answer> answers;
    bool ended = false;
    {
        const std::lock_guard lock(inbox_->mutex);
        answers.swap(inbox_->answers);
        ended = inbox_->ended;
    }
    // All of them: what is stored after a record that is not is still stored.
    Result<void> done;
    for (const Answer& answer : answers)
        if (auto one = read(answer); !one && done) done = one;
    if (!done) return done;
    if (ended || natsConnection_IsClosed(connection_.get())) {
        const char* text = nullptr;
        const natsStatus status = natsConnection_GetLastError(connection_.get(), &text);
        return broker_error(options_,
                            status != NATS_OK && text && *text ? text : "ended the connection");
    }
    if (!on_their_way_.empty() && !on_their_way_.front().delivered &&
        Clock::now() - on_their_way_.front().sent > std::chrono::seconds(options_.keepalive_s))
        return broker_error(
            options_,
            "did not acknowledge a record within " + std::to_string(options_.keepalive_s) + " s",
            ErrorCode::timeout);
    return {};
}

Result<bool> NatsSink::send(const PublishLine& line) {
    // Where no stream keeps them, somebody may make one between two records, and the second would
    // be stored before the first is sent again: one at a time, until one is stored.
    if (on_their_way_.size() >= (stream_is_known_ ? most_window : 1)) return false;
    const std::string topic =
        broker_topic(BrokerKind::nats, options_.topic, line.stream, line.model);
    const std::string_view payload = payload_of(line);
    const std::string reply = reply_ + std::to_string(first_number_ + on_their_way_.size());
    natsMsg* made = nullptr;
    natsStatus status = natsMsg_Create(&made, topic.c_str(), reply.c_str(), payload.data(),
                                       static_cast<int>(payload.size()));
    const MessagePtr message(made);
    const std::string id = id_of(line);
    if (status == NATS_OK && !id.empty())
        status = natsMsgHeader_Set(made, "Nats-Msg-Id", id.c_str());
    if (status == NATS_OK) status = natsConnection_PublishMsg(connection_.get(), made);
    const bool never = status == NATS_MAX_PAYLOAD;
    if (never)
        log_lost(options_, line, topic,
                 "the server takes " +
                     std::to_string(natsConnection_GetMaxPayload(connection_.get())) +
                     " bytes at most (max_payload)");
    if (status != NATS_OK && !never) return failure(status);
    OnItsWay& entry = on_their_way_.emplace_back();
    entry.delivered = entry.lost = never;
    entry.sent = Clock::now();
    entry.bytes = line.text.size();
    entry.line.stream = line.stream;
    entry.line.model = line.model;
    return true;
}

size_t NatsSink::take_delivered() {
    size_t count = 0;
    lost_lines_.clear();
    for (; !on_their_way_.empty() && on_their_way_.front().delivered; ++count) {
        if (on_their_way_.front().lost) lost_lines_.push_back(count);
        on_their_way_.pop_front();
    }
    first_number_ += count;
    return count;
}

void NatsSink::disconnect() {
    opening_.reset();
    subscription_.reset();
    // The library waits half a second for a server that does not answer. Nothing of ours depends on
    // when that is over: the thread owns the connection, and is left to itself.
    if (!on_their_way_.empty() && !natsConnection_IsClosed(connection_.get()))
        Strays::run("vartml-nats-end", server_->is_secure(),
                    [ended = std::move(connection_)]() mutable { ended.reset(); });
    connection_.reset();
    first_number_ += on_their_way_.size();
    on_their_way_.clear();
    inbox_.reset();
}

}  // namespace

std::unique_ptr<PublishSink> make_nats_sink(const BrokerOptions& options) {
    return std::make_unique<NatsSink>(options);
}

}  // namespace vartml::publish
