// SPDX-License-Identifier: Apache-2.0
// A real broker on a port of the loopback, and a client with a session that lasts.
#pragma once
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <mosquitto.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temp_dir.h"

namespace vartml::test {

// The program, from the environment; "" where there is none.
inline std::string broker_program() {
    const char* const path = std::getenv("VARTML_MOSQUITTO");
    return path ? path : "";
}

inline int free_port() {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    ::close(fd);
    return ntohs(address.sin_port);
}

class Broker {
public:
    // `settings` are further lines of its configuration.
    explicit Broker(const std::string& settings = "allow_anonymous true\n") {
        spill(dir_ / "conf", "listener " + std::to_string(port_) + " 127.0.0.1\n" + settings +
                                 "persistence true\npersistence_location " + dir_.path() +
                                 "/\nmax_queued_messages 0\nlog_dest stderr\nlog_type "
                                 "error\nlog_type notice\nlog_type information\n" +
                                 (::geteuid() == 0 ? "user root\n" : ""));
    }
    ~Broker() { stop(SIGKILL); }
    int port() const { return port_; }

    // Returns when it listens.
    void start() {
        int ends[2];
        ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
        std::string program = broker_program(), option = "-c", conf = dir_ / "conf";
        char* arguments[] = {program.data(), option.data(), conf.data(), nullptr};
        ASSERT_EQ(::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environ), 0);
        posix_spawn_file_actions_destroy(&actions);
        ::close(ends[1]);
        std::string log;
        char chunk[512];
        while (log.find(" running") == std::string::npos) {
            const ssize_t n = ::read(ends[0], chunk, sizeof chunk);
            ASSERT_GT(n, 0) << log;
            log.append(chunk, static_cast<size_t>(n));
        }
        output_ = ends[0];  // kept open: it goes on to write
    }
    // Is there, and does nothing: no acknowledgement comes.
    void pause() { ::kill(pid_, SIGSTOP); }
    void stop(int signal = SIGTERM) {
        if (pid_ <= 0) return;
        ::kill(pid_, signal);
        ::waitpid(pid_, nullptr, 0);
        ::close(output_);
        pid_ = 0;
    }

private:
    TempDir dir_;
    const int port_ = free_port();
    pid_t pid_ = 0;
    int output_ = -1;
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
