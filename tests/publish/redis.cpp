// SPDX-License-Identifier: Apache-2.0
// The publisher and a real Redis server that goes and comes.
#include <hiredis/hiredis.h>

#include <utility>

#include "lib/publish/spool.h"
#include "tests/publish/publishing.h"
#include "tests/publish/server.h"

namespace {

using namespace vartml;
using namespace vartml::test;

std::string server_program() {
    const char* const path = std::getenv("VARTML_REDIS_SERVER");
    return path ? path : "";
}

class RedisServer : public Server {
public:
    explicit RedisServer(std::vector<std::string> settings = {}) {
        std::vector<std::string> command = {server_program(), "--port",      std::to_string(port_),
                                            "--bind",         "127.0.0.1",   "--dir",
                                            dir_.path(),      "--save",      "",
                                            "--appendonly",   "yes",         "--appendfsync",
                                            "always",         "--daemonize", "no"};
        command.insert(command.end(), settings.begin(), settings.end());
        set_command(std::move(command), "Ready to accept connections");
    }
};

// The values of the field `record` of a stream's entries.
std::vector<std::string> entries(int port, const std::string& key) {
    std::unique_ptr<redisContext, decltype(&redisFree)> context(redisConnect("127.0.0.1", port),
                                                                redisFree);
    auto* reply = static_cast<redisReply*>(
        redisCommand(context.get(), "XRANGE %b - +", key.data(), key.size()));
    std::vector<std::string> texts;
    EXPECT_EQ(reply->type, REDIS_REPLY_ARRAY);
    for (size_t i = 0; i < reply->elements; ++i) {
        const redisReply* fields = reply->element[i]->element[1];
        EXPECT_EQ(fields->elements, 2u);
        EXPECT_EQ(std::string(fields->element[0]->str), "record");
        texts.emplace_back(fields->element[1]->str, fields->element[1]->len);
    }
    freeReplyObject(reply);
    return texts;
}

class Redis : public Publishing {
protected:
    Redis() : Publishing(BrokerKind::redis) {}
    void SetUp() override {
        if (server_program().empty()) GTEST_SKIP() << "the program redis-server is not installed";
        options_.topic = "frames";
    }
    // Connected, with a second to answer, and a server that does not.
    void open_and_pause(RedisServer& server) {
        server.start();
        options_.keepalive_s = 1;
        open(server.port(), {.spool_dir = temp_ / "spool"});
        wait_for("connected");
        server.pause();
    }
};

TEST_F(Redis, AServerMayComeLate) {
    RedisServer server;
    open(server.port(), {.queue_size = 10});
    put(10);
    wait_for_reason("Connection refused");
    server.start();
    wait_for("connected");
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(publisher_->counts().sent, 10u);
    EXPECT_EQ(expect_in_order(entries(server.port(), "frames"), publisher_->run()), 10u);
}

TEST_F(Redis, EveryRecordArrivesInOrderWhileTheServerIsKilledTenTimes) {
    constexpr int kills = 10, records = 5000;
    RedisServer server;
    server.start();
    open(server.port(), {.queue_size = records, .spool_dir = temp_ / "spool"});
    wait_for("connected");
    for (int i = 0; i < kills; ++i) {
        put(records / kills / 2);
        server.stop(SIGKILL);  // with records on their way
        put(records / kills / 2);
        wait_for("spooling");
        server.start();
        wait_for("connected");
    }
    EXPECT_TRUE(publisher_->drain(forever));
    const auto texts = entries(server.port(), "frames");
    EXPECT_EQ(expect_in_order(texts, publisher_->run()), uint64_t(records));
    const PublishCounts counts = publisher_->counts();
    EXPECT_EQ(counts.sent, uint64_t(records));
    EXPECT_EQ(counts.dropped, 0u);
    EXPECT_EQ(counts.spool_records, 0u);
    EXPECT_EQ(counts.reconnects, uint64_t(kills));
}

TEST_F(Redis, AfterTheServerIsKilledEveryRecordWasAcknowledgedOrIsInTheSpool) {
    RedisServer server;
    server.start();
    open(server.port(), {.queue_size = 5000, .spool_dir = temp_ / "spool"});
    wait_for("connected");
    put(1000);
    server.stop(SIGKILL);
    put(1000);
    wait_for("spooling");
    publisher_->close(forever);
    const PublishCounts counts = publisher_->counts();
    EXPECT_EQ(counts.sent + counts.spool_records, 2000u);
    EXPECT_EQ(counts.dropped, 0u);
}

TEST_F(Redis, AStreamKeepsAboutAsManyEntriesAsItIsTold) {
    RedisServer server;
    server.start();
    options_.max_length = 100;
    open(server.port(), {.queue_size = 3000});
    put(3000);
    EXPECT_TRUE(publisher_->drain(forever));
    const size_t kept = entries(server.port(), "frames").size();
    EXPECT_GE(kept, 100u);
    EXPECT_LT(kept, 400u);  // it forgets nodes of 100
}

TEST_F(Redis, KeysFollowTheRecord) {
    RedisServer server;
    server.start();
    options_.topic = "site:{stream}:{model}";
    open(server.port());
    auto record = a_record(*publisher_, 0);
    record->stream = "gate #1 +";
    record->inferences.emplace_back().model = "yolo";
    record->num_inferences = 1;
    publisher_->put(std::move(record));
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(entries(server.port(), "site:gate #1 +:yolo").size(), 1u);
}

TEST_F(Redis, APasswordIsSentAndNeverTold) {
    RedisServer server({"--requirepass", "correcthorse"});
    server.start();
    options_.client_id = "camera";
    open(server.port());
    wait_for_reason("NOAUTH");
    publisher_->close(0);
    options_.password = "wrong";
    open(server.port());
    wait_for_reason("WRONGPASS");
    publisher_->close(0);
    options_.password = "correcthorse";
    open(server.port());
    put(10);
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(publisher_->counts().sent, 10u);
    EXPECT_EQ(reasons().find("correcthorse"), std::string::npos) << reasons();
}

// A key that is something else, a disk that is full: somebody has to look, and nothing is lost.
TEST_F(Redis, WhatTheServerRefusesIsAnOutage) {
    RedisServer server;
    server.start();
    std::unique_ptr<redisContext, decltype(&redisFree)> other(
        redisConnect("127.0.0.1", server.port()), redisFree);
    freeReplyObject(redisCommand(other.get(), "SET frames text"));
    open(server.port(), {.spool_dir = temp_ / "spool"});
    put(5);
    wait_for_reason("WRONGTYPE");
    freeReplyObject(redisCommand(other.get(), "DEL frames"));
    EXPECT_TRUE(publisher_->drain(forever) && publisher_->drain(forever));
    publisher_->close(forever);
    const PublishCounts counts = publisher_->counts();
    EXPECT_EQ(counts.sent + counts.spool_records, 5u);
    EXPECT_EQ(counts.dropped, 0u);
}

TEST_F(Redis, ARecordThatTheServerCannotReadLeavesAGap) {
    RedisServer server({"--proto-max-bulk-len", "1mb"});
    server.start();
    open(server.port());
    put(2);
    auto large = a_record(*publisher_, next_++, 100000);
    for (int i = 0; i < 15; ++i) large->objects.push_back(large->objects[0]);
    publisher_->put(std::move(large));
    put(2);
    wait_for_reason("Protocol error");
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(publisher_->counts().sent, 4u);
    EXPECT_EQ(publisher_->counts().dropped, 1u);
    EXPECT_EQ(entries(server.port(), "frames").size(), 5u);
}

TEST_F(Redis, AServerThatDoesNotAnswerIsGivenUp) {
    RedisServer server;
    open_and_pause(server);
    put(5);
    wait_for_reason("has not answered for 1 s");
    publisher_->close(0);
    EXPECT_EQ(publisher_->counts().spool_records, 5u);
}

TEST_F(Redis, AServerThatDoesNotAnswerIsGivenUpThoughRecordsComeOn) {
    RedisServer server;
    open_and_pause(server);
    int sent = 0;  // fewer than the sink has on their way at once
    for (; sent < 60 && reasons().find("has not answered for 1 s") == std::string::npos; ++sent) {
        put(1);
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    EXPECT_LT(sent, 60);
    publisher_->close(0);
}

TEST_F(Redis, AnUnknownHostIsAnOutage) {
    options_.address = "broker.invalid";  // given: RFC 6761, 6.4: it never resolves
    open(6379);
    put(1);
    wait_for_reason("broker broker.invalid:6379: ");
    publisher_->close(0);
}

TEST(RedisOptions, FilesOfTlsAreRefused) {
    const auto sink = make_broker_sink(BrokerKind::redis, {.tls_ca_file = "/ca.pem"});
    ASSERT_FALSE(sink);
    EXPECT_EQ(sink.error().message,
              "/ca.pem: is a file for TLS, which method=redis does not speak; set none, and reach "
              "the server through a tunnel");
}

}  // namespace
