// SPDX-License-Identifier: Apache-2.0
// The publisher and the cluster that librdkafka carries for tests, which speaks Kafka's protocol on
// the loopback; another client reads the records back.
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <algorithm>
#include <utility>

#include "tests/publish/publishing.h"
#include "tests/publish/server.h"

namespace {

using namespace vartml;
using namespace vartml::test;

class Cluster {
public:
    Cluster() {
        char text[512];
        owner_ = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), text, sizeof text);
        cluster_ = rd_kafka_mock_cluster_new(owner_, 1);
    }
    Cluster(const Cluster&) = delete;
    Cluster& operator=(const Cluster&) = delete;
    ~Cluster() {
        rd_kafka_mock_cluster_destroy(cluster_);
        rd_kafka_destroy(owner_);
    }
    int port() const {
        const std::string address = rd_kafka_mock_cluster_bootstraps(cluster_);
        return std::stoi(address.substr(address.rfind(':') + 1));
    }
    void make_topic(const char* name, int partitions) {
        EXPECT_EQ(rd_kafka_mock_topic_create(cluster_, name, partitions, 1), 0);
    }
    void go() { rd_kafka_mock_broker_set_down(cluster_, 1); }
    void come() { rd_kafka_mock_broker_set_up(cluster_, 1); }
    // The answers to the next produce requests.
    void refuse(rd_kafka_resp_err_t code, size_t times) {
        const std::vector<rd_kafka_resp_err_t> codes(times, code);
        rd_kafka_mock_push_request_errors_array(cluster_, produce, times, codes.data());
    }

    struct Message {
        std::string key, text;
        int partition;
    };
    // Until the record of this number came.
    std::vector<Message> messages(const char* topic, int partitions, uint64_t last) const {
        char text[512];
        rd_kafka_conf_t* conf = rd_kafka_conf_new();
        rd_kafka_conf_set(conf, "bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster_),
                          text, sizeof text);
        rd_kafka_conf_set(conf, "group.id", "test", text, sizeof text);
        rd_kafka_t* consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof text);
        rd_kafka_topic_partition_list_t* list = rd_kafka_topic_partition_list_new(partitions);
        for (int i = 0; i < partitions; ++i) {
            rd_kafka_topic_partition_list_add(list, topic, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
        }
        rd_kafka_assign(consumer, list);
        rd_kafka_topic_partition_list_destroy(list);
        std::vector<Message> found;
        for (bool done = false; !done;) {
            rd_kafka_message_t* m = rd_kafka_consumer_poll(consumer, 1000);
            if (!m) continue;
            if (!m->err) {
                found.push_back({{static_cast<const char*>(m->key), m->key_len},
                                 {static_cast<const char*>(m->payload), m->len},
                                 m->partition});
                done = seen(found.back().text).last == last;
            }
            rd_kafka_message_destroy(m);
        }
        rd_kafka_consumer_close(consumer);
        rd_kafka_destroy(consumer);
        return found;
    }
    std::vector<std::string> texts(const char* topic, uint64_t last) const {
        std::vector<std::string> texts;
        for (Message& m : messages(topic, 1, last)) texts.push_back(std::move(m.text));
        return texts;
    }

private:
    static constexpr int16_t produce = 0;  // given: Kafka's protocol, API keys
    rd_kafka_t* owner_;
    rd_kafka_mock_cluster_t* cluster_;
};

class Kafka : public Publishing {
protected:
    Kafka() : Publishing(BrokerKind::kafka) { options_.topic = "frames"; }
};

TEST_F(Kafka, RecordsArriveWithTheirStreamAsKey) {
    Cluster cluster;
    cluster.make_topic("frames", 1);
    open(cluster.port(), {.queue_size = 500});
    put(500);
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(publisher_->counts().sent, 500u);
    EXPECT_EQ(expect_in_order(cluster.texts("frames", 499), publisher_->run()), 500u);
    for (const auto& m : cluster.messages("frames", 1, 499))
        EXPECT_NE(m.text.find("\"stream\":\"" + m.key + '"'), std::string::npos) << m.text;
}

TEST_F(Kafka, AClusterMayComeLate) {
    Cluster cluster;
    cluster.make_topic("frames", 1);
    cluster.go();
    open(cluster.port(), {.queue_size = 10});
    put(10);
    wait_for_reason("broker 127.0.0.1:");
    cluster.come();
    wait_for("connected");
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(expect_in_order(cluster.texts("frames", 9), publisher_->run()), 10u);
}

TEST_F(Kafka, EveryRecordArrivesInOrderWhileTheClusterGoesFiveTimes) {
    constexpr int times = 5, records = 1000;
    Cluster cluster;
    cluster.make_topic("frames", 1);
    open(cluster.port(), {.queue_size = records, .spool_dir = temp_ / "spool"});
    wait_for("connected");
    for (int i = 0; i < times; ++i) {
        put(records / times / 2);
        cluster.go();  // with records on their way
        put(records / times / 2);
        wait_for("spooling");
        cluster.come();
        wait_for("connected");
    }
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(expect_in_order(cluster.texts("frames", records - 1), publisher_->run()),
              uint64_t(records));
    const PublishCounts counts = publisher_->counts();
    EXPECT_EQ(counts.sent, uint64_t(records));
    EXPECT_EQ(counts.dropped, 0u);
    EXPECT_EQ(counts.spool_records, 0u);
}

TEST_F(Kafka, WhatTheClusterRefusesIsSentAgain) {
    Cluster cluster;
    cluster.make_topic("frames", 1);
    open(cluster.port(), {.spool_dir = temp_ / "spool"});
    wait_for("connected");
    cluster.refuse(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, 1);
    put(20);
    wait_for_reason("authorization failed");
    wait_for("connected");
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(expect_in_order(cluster.texts("frames", 19), publisher_->run()), 20u);
}

TEST_F(Kafka, ARecordThatIsTooLargeHoldsNothingUp) {
    Cluster cluster;
    cluster.make_topic("frames", 1);
    open(cluster.port());
    auto record = a_record(*publisher_, next_++);
    record->stream = std::string(2 << 20, 'x');  // message.max.bytes is 1 MB
    publisher_->put(std::move(record));
    put(3);
    EXPECT_TRUE(publisher_->drain(forever));
    EXPECT_EQ(cluster.texts("frames", 3).size(), 3u);
}

TEST_F(Kafka, AStreamStaysInOnePartition) {
    Cluster cluster;
    cluster.make_topic("frames", 4);
    open(cluster.port(), {.queue_size = 200});
    for (int i = 0; i < 200; ++i) {
        auto record = a_record(*publisher_, next_++);
        record->stream = "camera" + std::to_string(i % 8);
        publisher_->put(std::move(record));
    }
    EXPECT_TRUE(publisher_->drain(forever));
    put(1);
    EXPECT_TRUE(publisher_->drain(forever));
    std::vector<std::pair<std::string, int>> where;
    for (const auto& m : cluster.messages("frames", 4, 200)) where.emplace_back(m.key, m.partition);
    std::ranges::sort(where);
    where.erase(std::ranges::unique(where).begin(), where.end());
    for (size_t i = 1; i < where.size(); ++i) EXPECT_NE(where[i - 1].first, where[i].first);
}

TEST_F(Kafka, AnUnknownHostIsAnOutage) {
    options_.address = "broker.invalid";  // given: RFC 6761, 6.4: it never resolves
    open(9092);
    put(1);
    wait_for_reason("broker broker.invalid:9092: ");
    publisher_->close(0);
}

TEST(KafkaTopic, HasNothingThatKafkaForbids) {
    const std::pair<const char*, const char*> cases[] = {
        {"vartml/{stream}", "vartml_cam_1"},
        {"a.b-c_{model}", "a.b-c_m"},
        {"Tür", "T__r"},
    };
    for (const auto& [pattern, want] : cases)
        EXPECT_EQ(broker_topic(BrokerKind::kafka, pattern, "cam 1", "m"), want);
    EXPECT_EQ(broker_topic(BrokerKind::kafka, std::string(300, 'x'), "", "").size(), 249u);
}

}  // namespace
