// SPDX-License-Identifier: Apache-2.0
// A real MQTT broker, and a client with a session that lasts.
#pragma once
#include <gtest/gtest.h>
#include <mosquitto.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/publish/server.h"

namespace vartml::test {

// The program, from the environment; "" where there is none.
inline std::string broker_program() {
    const char* const path = std::getenv("VARTML_MOSQUITTO");
    return path ? path : "";
}

class Broker : public Server {
public:
    // `settings` are further lines of its configuration.
    explicit Broker(const std::string& settings = "allow_anonymous true\n") {
        spill(dir_ / "conf", "listener " + std::to_string(port_) + " 127.0.0.1\n" + settings +
                                 "persistence true\npersistence_location " + dir_.path() +
                                 "/\nmax_queued_messages 0\nlog_dest stderr\nlog_type "
                                 "error\nlog_type notice\nlog_type information\n" +
                                 (::geteuid() == 0 ? "user root\n" : ""));
        set_command({broker_program(), "-c", dir_ / "conf"}, " running\n");
    }
};

// Subscribes to everything, in a session that the broker keeps while it is away.
class Subscriber {
public:
    using Message = std::pair<std::string, std::string>;  // topic and text
    explicit Subscriber(int port) : port_(port) {
        mosquitto_lib_init();
        client_ = mosquitto_new("subscriber", false, this);
        mosquitto_subscribe_callback_set(client_, [](mosquitto*, void* self, int, int, const int*) {
            static_cast<Subscriber*>(self)->subscribed_ = true;
        });
        mosquitto_message_callback_set(
            client_, [](mosquitto*, void* self, const mosquitto_message* message) {
                static_cast<Subscriber*>(self)->messages_.emplace_back(
                    message->topic, std::string(static_cast<const char*>(message->payload),
                                                static_cast<size_t>(message->payloadlen)));
            });
    }
    Subscriber(const Subscriber&) = delete;
    Subscriber& operator=(const Subscriber&) = delete;
    ~Subscriber() { mosquitto_destroy(client_); }

    void subscribe() {
        connect();
        ASSERT_EQ(mosquitto_subscribe(client_, nullptr, "#", 1), MOSQ_ERR_SUCCESS);
        while (!subscribed_) ASSERT_EQ(mosquitto_loop(client_, -1, 1), MOSQ_ERR_SUCCESS);
        disconnect();
    }
    // Receives until it has enough.
    const std::vector<Message>& collect(
        const std::function<bool(const std::vector<Message>&)>& enough) {
        connect();
        while (!enough(messages_)) {
            const int code = mosquitto_loop(client_, -1, 1);
            EXPECT_EQ(code, MOSQ_ERR_SUCCESS);
            if (code != MOSQ_ERR_SUCCESS) break;
        }
        disconnect();
        return messages_;
    }
    std::vector<std::string> texts() const {
        std::vector<std::string> texts;
        for (const Message& message : messages_) texts.push_back(message.second);
        return texts;
    }

private:
    void connect() {
        ASSERT_EQ(mosquitto_connect(client_, "127.0.0.1", port_, 60), MOSQ_ERR_SUCCESS);
    }
    void disconnect() {
        mosquitto_disconnect(client_);
        while (mosquitto_loop(client_, -1, 1) == MOSQ_ERR_SUCCESS) {
        }
    }
    const int port_;
    mosquitto* client_;
    bool subscribed_ = false;
    std::vector<Message> messages_;
};

}  // namespace vartml::test
