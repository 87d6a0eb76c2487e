// SPDX-License-Identifier: Apache-2.0
// A real server on a port of the loopback, that a test stops and starts.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "tests/support/free_port.h"
#include "tests/support/temp_dir.h"

namespace vartml::test {

class Server {
public:
    Server() = default;
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    ~Server() { stop(SIGKILL); }
    int port() const { return port_; }

    // Returns when it listens.
    void start() {
        int ends[2];
        ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
        std::vector<char*> arguments;
        for (std::string& word : command_) arguments.push_back(word.data());
        arguments.push_back(nullptr);
        ASSERT_EQ(
            ::posix_spawn(&pid_, command_[0].c_str(), &actions, nullptr, arguments.data(), environ),
            0);
        posix_spawn_file_actions_destroy(&actions);
        ::close(ends[1]);
        std::string log;
        char chunk[512];
        while (log.find(ready_) == std::string::npos) {
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

protected:
    // The program with its arguments, and what it writes when it listens.
    void set_command(std::vector<std::string> command, std::string ready) {
        command_ = std::move(command);
        ready_ = std::move(ready);
    }
    TempDir dir_;
    const FreePort reserved_;
    const int port_ = reserved_.number();

private:
    std::vector<std::string> command_;
    std::string ready_;
    pid_t pid_ = 0;
    int output_ = -1;
};

}  // namespace vartml::test
