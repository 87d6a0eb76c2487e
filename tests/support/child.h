// SPDX-License-Identifier: Apache-2.0
// A program in a process of its own, with its standard input and output. It ends with its owner.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

namespace vartml::test {

class Child {
public:
    Child() = default;
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() { stop(SIGKILL); }

    void start(std::vector<std::string> words) {
        stop(SIGKILL);
        int in[2], out[2];
        ASSERT_EQ(::pipe2(in, O_CLOEXEC), 0);
        ASSERT_EQ(::pipe2(out, O_CLOEXEC), 0);
        std::vector<char*> argv;
        for (std::string& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        pid_ = ::fork();
        ASSERT_GE(pid_, 0);
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            ::dup2(in[0], 0);
            ::dup2(out[1], 1);
            ::execvp(argv[0], argv.data());
            ::_exit(127);
        }
        ::close(in[0]);
        ::close(out[1]);
        input_ = in[1];
        output_ = out[0];
    }
    // The next line of its output; "" at its end.
    std::string line() {
        for (;;) {
            const size_t end = text_.find('\n');
            if (end != std::string::npos) {
                std::string found = text_.substr(0, end);
                text_.erase(0, end + 1);
                return found;
            }
            char chunk[512];
            const ssize_t n = ::read(output_, chunk, sizeof chunk);
            if (n <= 0) return "";
            text_.append(chunk, static_cast<size_t>(n));
        }
    }
    void tell(const std::string& line) {
        const std::string text = line + '\n';
        EXPECT_EQ(::write(input_, text.data(), text.size()), ssize_t(text.size()));
    }
    void signal(int number) const { ::kill(pid_, number); }
    bool is_started() const { return pid_ > 0; }
    pid_t pid() const { return pid_; }
    // Its exit status, as waitpid gives it.
    int stop(int number = SIGTERM) {
        if (pid_ <= 0) return 0;
        ::kill(pid_, number);
        return wait();
    }
    int wait() {
        int status = 0;
        ::waitpid(std::exchange(pid_, 0), &status, 0);
        ::close(input_);
        ::close(output_);
        text_.clear();
        return status;
    }

private:
    pid_t pid_ = 0;
    int input_ = -1, output_ = -1;
    std::string text_;
};

}  // namespace vartml::test
