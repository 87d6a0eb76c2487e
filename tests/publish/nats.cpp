// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <nats/nats.h>
#include <poll.h>
#include <sys/socket.h>

#include <arpa/inet.h>

#include <atomic>
#include <set>
#include <thread>

#include "lib/base/file.h"
#include "tests/publish/publishing.h"
#include "tests/publish/server.h"

namespace {

using namespace vartml;
using namespace vartml::test;

// The program, from the environment; "" where there is none.
std::string server_program() {
    const char* const path = std::getenv("VARTML_NATS_SERVER");
    return path ? path : "";
}

class NatsServer : public Server {
public:
    explicit NatsServer(const std::string& settings = "", bool jetstream = true) {
        spill(dir_ / "conf",
              "listen: \"127.0.0.1:" + std::to_string(port_) + "\"\n" + settings +
                  (jetstream ? "\njetstream { store_dir: \"" + dir_.path() + "\" }\n" : ""));
        set_command({server_program(), "-c", dir_ / "conf"}, "Server is ready");
    }
};

struct Stored {
    std::string subject, id, text;
};

// Reads what a stream of JetStream keeps, and makes streams.
class Reader {
public:
    explicit Reader(int port, const std::string& login = "") {
        const std::string url = "nats://" + login + "127.0.0.1:" + std::to_string(port);
        EXPECT_EQ(natsConnection_ConnectTo(&connection_, url.c_str()), NATS_OK);
        EXPECT_EQ(natsConnection_JetStream(&context_, connection_, nullptr), NATS_OK);
    }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    ~Reader() {
        jsCtx_Destroy(context_);
        natsConnection_Destroy(connection_);
    }
    void make(const char* name, const char* subjects, int32_t longest = -1) {
        jsStreamConfig config;
        jsStreamConfig_Init(&config);
        config.Name = name;
        config.Subjects = &subjects;
        config.SubjectsLen = 1;
        config.MaxMsgSize = longest;
        ASSERT_EQ(js_AddStream(nullptr, context_, &config, nullptr, nullptr), NATS_OK);
    }
    uint64_t count(const char* stream) {
        jsStreamInfo* info = nullptr;
        if (js_GetStreamInfo(&info, context_, stream, nullptr, nullptr) != NATS_OK) return 0;
        const uint64_t count = info->State.Msgs;
        jsStreamInfo_Destroy(info);
        return count;
    }
    std::vector<Stored> all(const char* stream) {
        std::vector<Stored> found;
        for (uint64_t n = 1, count = this->count(stream); n <= count; ++n) {
            natsMsg* message = nullptr;
            EXPECT_EQ(js_GetMsg(&message, context_, stream, n, nullptr, nullptr), NATS_OK);
            if (!message) break;
            const char* id = nullptr;
            natsMsgHeader_Get(message, "Nats-Msg-Id", &id);
            found.push_back(
                {natsMsg_GetSubject(message),
                 id ? id : "",
                 {natsMsg_GetData(message), static_cast<size_t>(natsMsg_GetDataLength(message))}});
            natsMsg_Destroy(message);
        }
        return found;
    }

private:
    natsConnection* connection_ = nullptr;
    jsCtx* context_ = nullptr;
};

// Between client and server; its way back can be cut, so that the client hears nothing more.
class Relay {
public:
    explicit Relay(int to) : to_(to) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        EXPECT_EQ(::bind(listen_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
        EXPECT_EQ(::listen(listen_.get(), 8), 0);
        ::getsockname(listen_.get(), reinterpret_cast<sockaddr*>(&address), &size);
        port_ = ntohs(address.sin_port);
        thread_ = std::thread([this] { run(); });
    }
    ~Relay() {
        end_ = true;
        ::shutdown(listen_.get(), SHUT_RDWR);
        thread_.join();
    }
    int port() const { return port_; }
    void cut() { cut_ = true; }
    // Ends the connection that is there; the next one has its way back.
    void drop() { drop_ = true; }

private:
    void run() {
        while (!end_) {
            const Fd client(::accept(listen_.get(), nullptr, nullptr));
            if (!client) continue;
            sockaddr_in address{};
            address.sin_family = AF_INET;
            address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            address.sin_port = htons(static_cast<uint16_t>(to_));
            const Fd server(::socket(AF_INET, SOCK_STREAM, 0));
            if (::connect(server.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
                forward(client.get(), server.get());
        }
    }
    void forward(int client, int server) {
        while (!end_ && !drop_) {
            pollfd ends[2] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
            if (::poll(ends, 2, 20) < 0) return;
            if (ends[0].revents && !pass(client, server, false)) return;
            if (ends[1].revents && !pass(server, client, cut_)) return;
        }
        drop_ = cut_ = false;
    }
    static bool pass(int from, int to, bool away) {
        char bytes[65536];
        const ssize_t n = ::recv(from, bytes, sizeof bytes, 0);
        if (n <= 0) return false;
        for (ssize_t at = 0; !away && at < n;) {
            const ssize_t sent = ::send(to, bytes + at, static_cast<size_t>(n - at), MSG_NOSIGNAL);
            if (sent <= 0) return false;
            at += sent;
        }
        return true;
    }
    const int to_;
    const Fd listen_{::socket(AF_INET, SOCK_STREAM, 0)};
    int port_ = 0;
    std::atomic<bool> end_{false}, cut_{false}, drop_{false};
    std::thread thread_;
};

class Nats : public Publishing {
protected:
    Nats() : Publishing(BrokerKind::nats) {}
    void SetUp() override {
        if (server_program().empty()) GTEST_SKIP() << "the program nats-server is not installed";
    }
    // While the link is down a publisher with a spool has nothing to deliver.
    void wait_for_sent(uint64_t count) {
        while (publisher_->counts().sent < count) ::poll(nullptr, 0, 5);
    }
    // Each record of the publisher from 0 to `count`, once and in order.
    static void expect_once(Reader& reader, const std::string& run, uint64_t count,
                            const char* stream = "vartml") {
        const auto stored = reader.all(stream);
        ASSERT_EQ(stored.size(), count);
        for (uint64_t i = 0; i < count; ++i)
            ASSERT_EQ(seen(stored[i].text), (Seen{run, i, i, false})) << stored[i].text;
    }
};

TEST_F(Nats, AServerMayComeLateAndGetsTheStreamThatItLacks) {
    NatsServer server;
    open(server.port(), {.queue_size = 10});
    put(10);
    wait_for_reason("broker 127.0.0.1:" + std::to_string(server.port()) + ": ");
    server.start();
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(publisher_->counts().sent, 10u);
    Reader reader(server.port());
    expect_once(reader, publisher_->run(), 10);
    EXPECT_EQ(reader.all("vartml")[3].subject, "vartml.cam");
    EXPECT_EQ(reader.all("vartml")[3].id, publisher_->run() + "-3");
}

TEST_F(Nats, EveryRecordIsStoredOnceInOrderWhileTheServerIsKilledTenTimes) {
    constexpr int kills = 10, records = 5000;
    NatsServer server;
    server.start();
    open(server.port(), {.queue_size = records, .spool_dir = temp_ / "spool"});
    wait_for("connected");
    for (int i = 0; i < kills; ++i) {
        put(records / kills / 2);
        server.stop(i % 2 ? SIGTERM : SIGKILL);  // with records on their way
        put(records / kills / 2);
        wait_for("spooling");
        server.start();
        wait_for("connected");
    }
    wait_for_sent(records);
    Reader reader(server.port());
    expect_once(reader, publisher_->run(), records);
    const PublishCounts counts = publisher_->counts();
    EXPECT_EQ(counts.sent, uint64_t(records));
    EXPECT_EQ(counts.dropped, 0u);
    EXPECT_EQ(counts.spool_records, 0u);
}

TEST_F(Nats, WhatWasStoredWithoutAnAnswerIsSentAgainAndStoredOnce) {
    NatsServer server;
    server.start();
    Relay relay(server.port());
    Reader reader(server.port());
    open(relay.port(), {.queue_size = 1000, .spool_dir = temp_ / "spool"});
    put(10);
    wait_for_sent(10);
    for (int i = 1; i <= 3; ++i) {
        const uint64_t stored = reader.count("vartml");
        relay.cut();
        put(100);
        while (reader.count("vartml") == stored) ::poll(nullptr, 0, 5);
        relay.drop();
        wait_for_sent(10 + 100 * uint64_t(i));
    }
    expect_once(reader, publisher_->run(), 310);
    EXPECT_EQ(publisher_->counts().dropped, 0u);
}

TEST_F(Nats, TheSuccessorOfAProcessSendsItsSpoolAndNothingIsStoredTwice) {
    NatsServer server;
    server.start();
    Relay relay(server.port());
    Reader reader(server.port());
    open(relay.port(), {.queue_size = 1000, .spool_dir = temp_ / "spool"});
    put(10);
    wait_for_sent(10);
    relay.cut();
    put(50);
    while (reader.count("vartml") < 60) ::poll(nullptr, 0, 5);
    publisher_->close(0);  // it never hears that they were stored
    const std::string run = publisher_->run();
    EXPECT_EQ(publisher_->counts().sent, 10u);
    EXPECT_EQ(publisher_->counts().spool_records, 50u);
    publisher_.reset();
    open(server.port(), {.spool_dir = temp_ / "spool"});
    wait_for_sent(50);
    expect_once(reader, run, 60);
}

TEST_F(Nats, AServerThatFallsSilentIsLeftAndItsRecordsAreSentAgain) {
    NatsServer server;
    server.start();
    Relay relay(server.port());
    options_.keepalive_s = 1;
    open(relay.port(), {.queue_size = 100, .spool_dir = temp_ / "spool"});
    put(1);
    EXPECT_TRUE(publisher_->drain(forever));
    relay.cut();
    put(10);
    wait_for_reason("within 1 s");
    relay.drop();
    wait_for_sent(11);
    Reader reader(server.port());
    expect_once(reader, publisher_->run(), 11);
}

// It takes connections and says nothing, so that connecting lasts for seconds.
TEST_F(Nats, AServerThatSaysNothingDoesNotKeepTheSpoolOfAPublisherThatStops) {
    const Fd silent(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ASSERT_EQ(::bind(silent.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(::listen(silent.get(), 8), 0);
    ::getsockname(silent.get(), reinterpret_cast<sockaddr*>(&address), &size);
    for (uint64_t times = 1; times <= 2; ++times) {
        open(ntohs(address.sin_port), {.spool_dir = temp_ / "spool"});
        put(10);
        pollfd entry = {silent.get(), POLLIN, 0};
        EXPECT_EQ(::poll(&entry, 1, -1), 1);  // it is being connected to
        publisher_->close(0);
        EXPECT_EQ(publisher_->counts().spool_records, 10 * times);
        publisher_.reset();
    }
}

TEST_F(Nats, AStreamThatIsThereIsUsedAndATopicWithoutOneIsTold) {
    NatsServer server;
    server.start();
    Reader reader(server.port());
    reader.make("found", "site.*.*");
    options_.topic = "site/{stream}/{model}";
    open(server.port());
    put(3);
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(reader.count("found"), 3u);
    EXPECT_EQ(reader.all("found")[0].subject, "site.cam._");

    reader.make("other", "elsewhere");
    options_.topic = "other/{stream}";
    publisher_.reset();
    open(server.port());
    put(3);
    wait_for_reason("nor can 'other' be made for it: give a stream this subject");
}

TEST_F(Nats, WhatWaitsForAStreamIsStoredInOrderWhenSomebodyMakesIt) {
    NatsServer server;
    server.start();
    Reader reader(server.port());
    constexpr uint64_t count = 200;             // what is kept without a spool
    for (int round = 0; round < 20; ++round) {  // at another moment of its tries each
        const std::string name = "round" + std::to_string(round), late = "late_" + name;
        reader.make(name.c_str(), ("elsewhere." + name).c_str());  // so that none is made
        options_.topic = name + "/{stream}";
        next_ = 0;
        open(server.port());
        put(count);
        wait_for_reason("no stream of JetStream keeps subject '" + name + ".cam'");
        reader.make(late.c_str(), (name + ".*").c_str());
        EXPECT_TRUE(publisher_->drain(forever));
        expect_once(reader, publisher_->run(), count, late.c_str());
        publisher_.reset();
    }
}

TEST_F(Nats, WhatIsTooLargeForTheServerOrTheStreamIsLostAndTheRestGoesOn) {
    NatsServer server("max_payload: 50000");
    server.start();
    Reader reader(server.port());
    reader.make("vartml", "vartml.*", 5000);
    open(server.port());
    for (const size_t label : {3u, 60000u, 3u, 10000u, 3u})
        publisher_->put(a_record(*publisher_, next_++, label));
    EXPECT_TRUE(publisher_->drain(forever));
    std::set<uint64_t> frames, gaps;
    for (const auto& message : reader.all("vartml")) {
        const Seen line = seen(message.text);
        (line.gap ? gaps : frames).insert(line.first);
    }
    EXPECT_EQ(frames, (std::set<uint64_t>{0, 2, 4}));
    EXPECT_EQ(gaps, (std::set<uint64_t>{1, 3}));
    EXPECT_EQ(publisher_->counts().dropped, 2u);
}

TEST_F(Nats, AServerWithoutJetStreamIsAnOutageThatSaysSo) {
    NatsServer server("", false);
    server.start();
    open(server.port(), {.spool_dir = temp_ / "spool"});
    put(5);
    wait_for_reason("let the server have JetStream (-js)");
    publisher_->close(0);
    EXPECT_EQ(publisher_->counts().spool_records, 5u);
}

TEST_F(Nats, ARefusalTellsTheReasonAndNoPassword) {
    NatsServer server("authorization { user: camera, password: other }");
    server.start();
    options_.username = "camera", options_.password = "correcthorse";
    open(server.port());
    wait_for_reason("uthorization");
    publisher_->close(0);
    EXPECT_EQ(reasons().find("correcthorse"), std::string::npos) << reasons();
    options_.password = "other";
    open(server.port());
    put(5);
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(publisher_->counts().sent, 5u);
}

TEST_F(Nats, OneOfSeveralServersIsEnough) {
    NatsServer server;
    server.start();
    const FreePort nobodys;
    options_.address = "127.0.0.1:" + std::to_string(nobodys.number()) +
                       ",127.0.0.1:" + std::to_string(server.port());
    open(1);
    put(5);
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(publisher_->counts().sent, 5u);
}

TEST_F(Nats, AnUnknownHostIsAnOutage) {
    options_.address = "broker.invalid";  // given: RFC 6761, 6.4: it never resolves
    open(4222);
    put(1);
    wait_for_reason("broker broker.invalid:4222: ");
    publisher_->close(0);
}

// A certificate of the server that is its own CA.
TEST_F(Nats, TalksToAServerWhoseCertificateItCanCheckAndToNoOther) {
    const std::string key = temp_ / "key.pem", certificate = temp_ / "cert.pem",
                      other = temp_ / "other.pem";
    for (const std::string& file : {certificate, other}) {
        const std::string command =
            "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=vartml "
            "-addext subjectAltName=IP:127.0.0.1 -keyout " +
            (file == other ? temp_ / "other.key" : key) + " -out " + file + " 2>/dev/null";
        if (std::system(command.c_str()) != 0) GTEST_SKIP() << "openssl is not installed";
    }
    NatsServer server("tls { cert_file: \"" + certificate + "\", key_file: \"" + key + "\" }");
    server.start();
    options_.tls_ca_file = other;
    open(server.port());
    put(1);
    wait_for_reason("broker 127.0.0.1:");
    publisher_->close(0);
    EXPECT_EQ(publisher_->counts().sent, 0u);

    options_.tls_ca_file = certificate;
    open(server.port());
    put(10);
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(publisher_->counts().sent, 10u);
}

TEST(NatsSubject, HasAWordForEachPart) {
    struct Case {
        std::string pattern, stream, model, want;
    };
    const Case cases[] = {
        {"vartml/{stream}", "cam", "m", "vartml.cam"},
        {"vartml.{stream}", "cam", "m", "vartml.cam"},
        {"{model}/{stream}/x", "a/b", "m.v2", "m_v2.a_b.x"},  // what is put in is one word
        {"x/{stream}", "a*b>c\n d", "", "x.a_b_c__d"},        // wildcards, white space
        {"x*/{stream}", "Tür", "", "x_.Tür"},
        {"x/{stream}", "\xff", "", "x._"},
        {"/a//{stream}/", "", "", "_.a._._._"},  // no word is empty
        {"", "", "", "_"},
        {"{what}", "s", "m", "{what}"},
    };
    for (const Case& c : cases)
        EXPECT_EQ(broker_topic(BrokerKind::nats, c.pattern, c.stream, c.model), c.want);
}

TEST(NatsLogin, IsCheckedBeforeAnythingIsSent) {
    const TempDir dir;
    spill(dir / "creds", "-----BEGIN NATS USER JWT-----\n");
    spill(dir / "other", "hello");
    struct Case {
        BrokerKind kind;
        std::string file, says;
    };
    const Case cases[] = {
        {BrokerKind::nats, dir / "none", "cannot be opened"},
        {BrokerKind::nats, dir / "other", "has no PEM block"},
        {BrokerKind::mqtt, dir / "creds", "method=mqtt does not have"},
    };
    for (const Case& c : cases) {
        const auto sink = make_broker_sink(c.kind, {.credentials_file = c.file});
        ASSERT_FALSE(sink);
        EXPECT_TRUE(sink.error().message.starts_with(c.file + ": ")) << sink.error().message;
        EXPECT_NE(sink.error().message.find(c.says), std::string::npos) << sink.error().message;
    }
    EXPECT_TRUE(make_broker_sink(BrokerKind::nats, {.credentials_file = dir / "creds"}));
    for (const char* address : {"nats://camera:secret@broker", "camera:secret@broker", "", ","}) {
        const auto sink = make_broker_sink(BrokerKind::nats, {.address = address});
        ASSERT_FALSE(sink) << address;
        EXPECT_NE(sink.error().message.find("address"), std::string::npos);
        EXPECT_EQ(sink.error().message.find("secret"), std::string::npos);
    }
}

}  // namespace
