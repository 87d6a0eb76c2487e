// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vartml/publish_broker.h>

namespace {

using namespace vartml;
using Options = BrokerOptions;

TEST(CheckBroker, AnAddressIsAHostAndOfNatsSeveralWithPorts) {
    struct Case {
        BrokerKind kind;
        std::string address;
        bool good;
    };
    const Case cases[] = {
        {BrokerKind::mqtt, "broker", true},
        {BrokerKind::mqtt, "broker.example.com", true},
        {BrokerKind::mqtt, "192.0.2.1", true},
        {BrokerKind::mqtt, "fe80::1%eth0", true},
        {BrokerKind::mqtt, "", false},
        {BrokerKind::mqtt, " ", false},
        {BrokerKind::mqtt, "mqtt://broker", false},
        {BrokerKind::mqtt, "broker:1883", false},
        {BrokerKind::mqtt, "[::1]", false},
        {BrokerKind::mqtt, "a,b", false},
        {BrokerKind::redis, "camera:secret@broker", false},
        {BrokerKind::redis, "redis", true},
        {BrokerKind::kafka, "broker:9092", false},
        {BrokerKind::kafka, "::1", true},
        {BrokerKind::nats, "a, b:4223 ,,", true},
        {BrokerKind::nats, "[::1]:4222,::1,[::1]", true},
        {BrokerKind::nats, "broker:65535", true},
        {BrokerKind::nats, "broker:65536", false},
        {BrokerKind::nats, "broker:0", false},
        {BrokerKind::nats, "broker:", false},
        {BrokerKind::nats, "broker:x", false},
        {BrokerKind::nats, ":4222", false},
        {BrokerKind::nats, "[]:4222", false},
        {BrokerKind::nats, "a,b:70000", false},
        {BrokerKind::nats, "nats://broker", false},
        {BrokerKind::nats, ",", false},
    };
    for (const Case& c : cases) {
        const auto found = check_broker(c.kind, {.address = c.address});
        EXPECT_EQ(!found, c.good) << "'" << c.address << "'";
        if (!found) continue;
        EXPECT_TRUE(found->option == &Options::address);
        EXPECT_NE(found->error.message.find("address"), std::string::npos);
        EXPECT_EQ(found->error.message.find("secret"), std::string::npos);
    }
}

TEST(CheckBroker, HalfOfALoginIsRefusedWhereTheKindWouldNotSendIt) {
    struct Case {
        BrokerKind kind;
        bool lone_username, lone_password;
    };
    const Case cases[] = {{BrokerKind::mqtt, true, false},
                          {BrokerKind::redis, false, true},
                          {BrokerKind::kafka, false, false},
                          {BrokerKind::nats, true, false}};
    for (const Case& c : cases) {
        EXPECT_FALSE(check_broker(c.kind, {}));
        EXPECT_FALSE(check_broker(c.kind, {.username = "camera", .password = "secret"}));
        const auto username = check_broker(c.kind, {.username = "camera"});
        EXPECT_EQ(!username, c.lone_username);
        if (username) {
            EXPECT_TRUE(username->option == &Options::password);
        }
        const auto password = check_broker(c.kind, {.password = "secret"});
        EXPECT_EQ(!password, c.lone_password);
        if (password) {
            EXPECT_TRUE(password->option == &Options::username);
        }
    }
}

}  // namespace
