// SPDX-License-Identifier: Apache-2.0
// The sink over hiredis: commands go out as they fit, replies come in their order, and nothing
// waits for either.
#include <hiredis/hiredis.h>
#include <hiredis/sds.h>

#include <chrono>
#include <vector>

#include "lib/publish/broker.h"

namespace vartml::publish {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int housekeeping_ms = 1000;  // for keep-alive, whose unit is the second

struct FreeContext {
    void operator()(redisContext* context) const { redisFree(context); }
};
struct FreeReply {
    void operator()(redisReply* reply) const { freeReplyObject(reply); }
};

class RedisSink final : public PublishSink {
public:
    explicit RedisSink(const BrokerOptions& options) : options_(options) {}

    Result<void> connect() override;
    bool connected() const override { return connected_; }
    Result<bool> send(const PublishLine& line) override;
    Result<void> work() override;
    Wait wait() const override {
        return {.fd = context_ ? context_->fd : -1,
                .read = true,
                .write = unsent_,
                .timeout_ms = housekeeping_ms};
    }
    size_t take_delivered() override { return std::exchange(delivered_, 0); }
    void disconnect() override;

private:
    Result<void> ask(const std::vector<std::string_view>& words);
    Result<void> write();
    Result<void> take(const redisReply& reply);
    Result<void> take_replies();
    Error failure() const { return broker_error(options_, context_->errstr); }

    BrokerOptions options_;
    std::unique_ptr<redisContext, FreeContext> context_;
    bool connected_ = false, unsent_ = false;
    unsigned greetings_ = 0;  // commands before the first record that were not answered yet
    size_t on_their_way_ = 0, delivered_ = 0;
    // The last reply, the first question after all were answered, or when a record went on that the
    // server did not take at once.
    Clock::time_point heard_{};
};

Result<void> RedisSink::ask(const std::vector<std::string_view>& words) {
    std::vector<const char*> texts;
    std::vector<size_t> sizes;
    for (const std::string_view word : words) {
        texts.push_back(word.data());
        sizes.push_back(word.size());
    }
    if (redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()), texts.data(),
                               sizes.data()) != REDIS_OK)
        return failure();
    if (greetings_ + on_their_way_ == 0) heard_ = Clock::now();
    unsent_ = true;
    return {};
}

Result<void> RedisSink::connect() {
    disconnect();
    context_.reset(redisConnectNonBlock(options_.address.c_str(), static_cast<int>(options_.port)));
    if (!context_) return broker_error(options_, "no memory", ErrorCode::out_of_memory);
    if (context_->err) return failure();
    std::vector<std::vector<std::string_view>> greetings;
    if (!options_.password.empty()) {
        auto& words = greetings.emplace_back(1, "AUTH");
        if (!options_.username.empty()) words.push_back(options_.username);
        words.push_back(options_.password);
    }
    if (!options_.client_id.empty()) greetings.push_back({"CLIENT", "SETNAME", options_.client_id});
    greetings.push_back({"PING"});  // the answer to which tells that records may come
    for (const auto& words : greetings) {
        if (auto done = ask(words); !done) return done;
        ++greetings_;
    }
    return {};
}

Result<void> RedisSink::write() {
    int done = 0;
    if (redisBufferWrite(context_.get(), &done) != REDIS_OK) {
        const Error ended = failure();
        // What the server answered before it closed the connection is still there to be read.
        context_->err = 0;
        if (redisBufferRead(context_.get()) == REDIS_OK)
            if (auto taken = take_replies(); !taken) return taken;
        return ended;
    }
    unsent_ = !done;
    return {};
}

Result<void> RedisSink::take(const redisReply& reply) {
    if (reply.type == REDIS_REPLY_ERROR) {
        // Of bytes that it could not read, such as those of a record that is too large.
        const std::string text(reply.str, reply.len);
        const bool unread = text.starts_with("ERR Protocol error");
        return broker_error(options_, "refused: " + text,
                            unread ? ErrorCode::io : ErrorCode::unsupported);
    }
    heard_ = Clock::now();
    if (greetings_) {
        connected_ = --greetings_ == 0;
    } else if (on_their_way_) {
        --on_their_way_;
        ++delivered_;
    }
    return {};
}

Result<void> RedisSink::take_replies() {
    for (;;) {
        void* next = nullptr;
        if (redisGetReplyFromReader(context_.get(), &next) != REDIS_OK) return failure();
        const std::unique_ptr<redisReply, FreeReply> reply(static_cast<redisReply*>(next));
        if (!reply) return {};
        if (auto done = take(*reply); !done) return done;
    }
}

Result<void> RedisSink::work() {
    const size_t left = sdslen(context_->obuf);
    if (auto done = write(); !done) return done;
    if (sdslen(context_->obuf) < left) heard_ = Clock::now();
    if (redisBufferRead(context_.get()) != REDIS_OK) return failure();
    if (auto done = take_replies(); !done) return done;
    if (greetings_ + on_their_way_ &&
        Clock::now() - heard_ > std::chrono::seconds(options_.keepalive_s)) {
        return broker_error(options_,
                            "has not answered for " + std::to_string(options_.keepalive_s) + " s",
                            ErrorCode::timeout);
    }
    return {};
}

Result<bool> RedisSink::send(const PublishLine& line) {
    if (on_their_way_ >= most_window || unsent_) return false;
    const std::string key =
        broker_topic(BrokerKind::redis, options_.topic, line.stream, line.model);
    const std::string length = std::to_string(options_.max_length);
    std::vector<std::string_view> words = {"XADD", key};
    if (options_.max_length) words.insert(words.end(), {"MAXLEN", "~", length});
    words.insert(words.end(), {"*", "record", payload_of(line)});
    if (auto done = ask(words); !done) return done.error();
    ++on_their_way_;
    if (auto done = write(); !done) return done.error();
    return true;
}

void RedisSink::disconnect() {
    context_.reset();
    connected_ = unsent_ = false;
    greetings_ = 0;
    on_their_way_ = delivered_ = 0;
}

}  // namespace

std::unique_ptr<PublishSink> make_redis_sink(const BrokerOptions& options) {
    return std::make_unique<RedisSink>(options);
}

}  // namespace vartml::publish
