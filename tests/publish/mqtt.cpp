// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <netdb.h>

#include "lib/publish/spool.h"
#include "tests/publish/broker.h"
#include "tests/publish/publishing.h"

namespace {

using namespace vartml;
using namespace vartml::test;

class Mqtt : public Publishing {
protected:
    Mqtt() : Publishing(BrokerKind::mqtt) {}
    void SetUp() override {
        if (broker_program().empty()) GTEST_SKIP() << "the program mosquitto is not installed";
    }
    static bool has(const std::vector<Subscriber::Message>& messages, uint64_t last) {
        return !messages.empty() && seen(messages.back().second).last == last;
    }
};

TEST_F(Mqtt, ABrokerMayComeLate) {
    Broker broker;
    open(broker.port(), {.queue_size = 10});
    put(10);
    wait_for_reason("Connection refused");
    broker.start();
    Subscriber subscriber(broker.port());
    wait_for("connected");
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(publisher_->counts().sent, 10u);
    subscriber.subscribe();
    put(10);
    subscriber.collect([](const auto& messages) { return has(messages, 19); });
    EXPECT_EQ(expect_in_order(subscriber.texts(), publisher_->run(), 10), 20u);
}

TEST_F(Mqtt, EveryRecordArrivesInOrderWhileTheBrokerIsStoppedTwentyTimes) {
    constexpr int stops = 20, records = 10000;
    Broker broker;
    broker.start();
    Subscriber subscriber(broker.port());
    subscriber.subscribe();
    open(broker.port(), {.queue_size = records, .spool_dir = temp_ / "spool"});
    wait_for("connected");
    for (int i = 0; i < stops; ++i) {
        put(records / stops / 2);
        broker.stop(SIGTERM);  // with records on their way
        put(records / stops / 2);
        wait_for("spooling");
        broker.start();
        wait_for("connected");
    }
    EXPECT_TRUE(publisher_->drain(forever));
    subscriber.collect([](const auto& messages) { return has(messages, records - 1); });
    EXPECT_EQ(expect_in_order(subscriber.texts(), publisher_->run()), uint64_t(records));
    const PublishCounts counts = publisher_->counts();
    EXPECT_EQ(counts.sent, uint64_t(records));
    EXPECT_EQ(counts.dropped, 0u);
    EXPECT_EQ(counts.spool_records, 0u);
    EXPECT_EQ(counts.reconnects, uint64_t(stops));
    for (const std::string& text : subscriber.texts()) EXPECT_FALSE(seen(text).gap);
}

TEST_F(Mqtt, AfterTheBrokerIsKilledEveryRecordWasAcknowledgedOrIsInTheSpool) {
    Broker broker;
    broker.start();
    open(broker.port(), {.queue_size = 5000, .spool_dir = temp_ / "spool"});
    wait_for("connected");
    put(1000);
    broker.stop(SIGKILL);
    put(1000);
    wait_for("spooling");
    publisher_->close(forever);  // until all lies in the spool, however busy the disk is
    const PublishCounts counts = publisher_->counts();
    EXPECT_EQ(counts.sent + counts.spool_records, 2000u);
    EXPECT_EQ(counts.dropped, 0u);
    auto spool = publish::Spool::open(temp_ / "spool", {});
    ASSERT_TRUE(spool);
    std::vector<std::string> lines;
    while (spool->has_unread()) lines.push_back(*spool->read());
    EXPECT_LE(seen(lines[0]).first, counts.sent);
    EXPECT_EQ(expect_in_order(lines, publisher_->run(), seen(lines[0]).first), 2000u);
}

TEST_F(Mqtt, EachQualityOfServiceDelivers) {
    for (const unsigned qos : {0u, 1u, 2u}) {
        Broker broker("allow_anonymous true\nqueue_qos0_messages true\n");
        broker.start();
        Subscriber subscriber(broker.port());
        subscriber.subscribe();
        options_.qos = qos;
        next_ = 0;
        open(broker.port(), {.queue_size = 1000});
        put(500);
        EXPECT_TRUE(publisher_->drain(forever));
        publisher_->close(forever);
        EXPECT_EQ(publisher_->counts().sent, 500u);
        subscriber.collect([](const auto& messages) { return has(messages, 499); });
        EXPECT_EQ(expect_in_order(subscriber.texts(), publisher_->run()), 500u) << qos;
        publisher_.reset();
        said_ = std::make_shared<Said>();
    }
}

TEST_F(Mqtt, TopicsFollowTheRecordAlsoOutOfTheSpool) {
    Broker broker;
    options_.topic = "site/{stream}/{model}";
    open(broker.port(), {.spool_dir = temp_ / "spool"});
    auto record = a_record(*publisher_, 0);
    record->stream = "gate #1";
    record->inferences.emplace_back().model = "yolo";
    record->num_inferences = 1;
    publisher_->put(std::move(record));
    wait_for("spooling");
    broker.start();
    Subscriber subscriber(broker.port());
    publisher_->close(0);
    subscriber.subscribe();
    publisher_.reset();
    open(broker.port(), {.spool_dir = temp_ / "spool"});
    const auto& messages = subscriber.collect([](const auto& m) { return m.size() == 1; });
    EXPECT_EQ(messages[0].first, "site/gate _1/yolo");
}

TEST_F(Mqtt, ARefusalTellsTheReasonAndNoPassword) {
    Broker broker("allow_anonymous false\n");
    broker.start();
    options_.username = "camera", options_.password = "correcthorse";
    open(broker.port());
    wait_for_reason("refused the connection");
    publisher_->close(0);
    EXPECT_EQ(reasons().find("correcthorse"), std::string::npos) << reasons();
}

// The first address of a name that the system knows.
sa_family_t first_family(const char* name) {
    addrinfo* addresses = nullptr;
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(name, nullptr, &hints, &addresses) != 0) return AF_UNSPEC;
    const int family = addresses->ai_family;
    freeaddrinfo(addresses);
    return static_cast<sa_family_t>(family);
}

// Debian's /etc/hosts has ::1 for localhost too, and the broker listens on 127.0.0.1 alone.
TEST_F(Mqtt, TheOtherFamilyOfAnAddressIsTriedToo) {
    if (first_family("localhost") != AF_INET6)
        GTEST_SKIP() << "localhost is not ::1 first on this machine";
    Broker broker;
    broker.start();
    options_.address = "localhost";
    open(broker.port());
    put(10);
    wait_for("connected");
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(publisher_->counts().sent, 10u);
    EXPECT_EQ(reasons().find("refused"), std::string::npos) << "not even an outage: " << reasons();
    // And again, after the broker went away.
    broker.stop(SIGTERM);
    wait_for_reason("broker localhost:");
    broker.start();
    wait_for("connected");
    put(10);
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(publisher_->counts().sent, 20u);
}

// A numeric address has one family; the reason is that of the attempt that could be made.
TEST_F(Mqtt, TheReasonIsThatOfTheFirstAttempt) {
    const FreePort nobodys;
    open(nobodys.number());
    wait_for_reason("Connection refused");
    publisher_->close(0);
}

TEST(MqttBackoff, IsAFewSecondsAtMost) {
    const auto sink = make_broker_sink(BrokerKind::mqtt, {});
    ASSERT_TRUE(sink);
    EXPECT_LE((*sink)->backoff.most_ms * 5 / 4, 5000u);  // with jitter
}

TEST_F(Mqtt, AnUnknownHostIsAnOutage) {
    options_.address = "broker.invalid";  // given: RFC 6761, 6.4: it never resolves
    open(1883);
    put(1);
    wait_for_reason("broker broker.invalid:1883: ");
    publisher_->close(0);
}

// A certificate of the broker that is its own CA.
TEST_F(Mqtt, TalksToABrokerWhoseCertificateItCanCheckAndToNoOther) {
    const std::string key = temp_ / "key.pem", certificate = temp_ / "cert.pem",
                      other = temp_ / "other.pem";
    for (const std::string& file : {certificate, other}) {
        const std::string command =
            "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=vartml "
            "-addext subjectAltName=IP:127.0.0.1 -keyout " +
            (file == other ? temp_ / "other.key" : key) + " -out " + file + " 2>/dev/null";
        if (std::system(command.c_str()) != 0) GTEST_SKIP() << "openssl is not installed";
    }
    Broker broker("allow_anonymous true\ncertfile " + certificate + "\nkeyfile " + key + "\n");
    broker.start();
    options_.tls_ca_file = other;
    open(broker.port());
    put(1);
    wait_for_reason("broker 127.0.0.1:");
    publisher_->close(0);
    EXPECT_EQ(publisher_->counts().sent, 0u);

    options_.tls_ca_file = certificate;
    open(broker.port());
    put(10);
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(publisher_->counts().sent, 10u);
}

TEST(MqttTopic, HasNothingThatMqttForbids) {
    struct Case {
        std::string pattern, stream, model, want;
    };
    const Case cases[] = {
        {"vartml/{stream}", "cam", "m", "vartml/cam"},
        {"{model}/{stream}/{model}", "a/b", "m", "m/a/b/m"},  // levels stay
        {"x/{stream}", "a+b#c\n\x01", "", "x/a_b_c__"},       // wildcards, control characters
        {"x/{stream}", std::string("a\0b", 3), "", "x/a_b"},  // U+0000
        {"x/{stream}", "Tür", "", "x/Tür"},                   // UTF-8 is allowed
        {"x/{stream}", "\xff\xfe", "", "x/__"},               // what is no UTF-8 is not
        {"{what}{", "s", "m", "{what}{"},                     // unknown names stay
        {"{stream}", "{model}", "m", "{model}"},              // what is put in is not looked at
        {"{stream}", "", "", "_"},                            // a topic is never empty
    };
    for (const Case& c : cases)
        EXPECT_EQ(broker_topic(BrokerKind::mqtt, c.pattern, c.stream, c.model), c.want);
    EXPECT_EQ(broker_topic(BrokerKind::mqtt, "{stream}", std::string(70000, 'x'), "").size(),
              65535u);
}

TEST(MqttLogin, OfAPasswordAloneIsRefused) {
    const auto sink = make_broker_sink(BrokerKind::mqtt, {.password = "secret"});
    ASSERT_FALSE(sink);
    EXPECT_EQ(sink.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(sink.error().message.find("username"), std::string::npos);
    EXPECT_EQ(sink.error().message.find("secret"), std::string::npos);
}

TEST(MqttFiles, AreCheckedBeforeAnythingIsSent) {
    const TempDir dir;
    spill(dir / "pem", "-----BEGIN CERTIFICATE-----\n");
    spill(dir / "other", "hello");
    const std::string pem = dir / "pem", other = dir / "other", none = dir / "none";
    struct Case {
        std::string ca, cert, key, file;
        ErrorCode code;
    };
    const Case cases[] = {
        {none, "", "", none, ErrorCode::not_found},
        {pem, none, pem, none, ErrorCode::not_found},
        {pem, pem, none, none, ErrorCode::not_found},
        {other, "", "", other, ErrorCode::invalid_argument},
        {pem, pem, "", pem, ErrorCode::invalid_argument},  // a certificate without key
        {pem, "", pem, pem, ErrorCode::invalid_argument},  // a key without certificate
        {"", pem, pem, pem, ErrorCode::invalid_argument},  // no CA: no TLS
    };
    for (const Case& c : cases) {
        const auto sink =
            make_broker_sink(BrokerKind::mqtt,
                             {.tls_ca_file = c.ca, .tls_cert_file = c.cert, .tls_key_file = c.key});
        ASSERT_FALSE(sink);
        EXPECT_EQ(sink.error().code, c.code) << sink.error().message;
        EXPECT_TRUE(sink.error().message.starts_with(c.file + ": ")) << sink.error().message;
    }
}

}  // namespace
