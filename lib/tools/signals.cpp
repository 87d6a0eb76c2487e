// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <system_error>
#include <thread>

#include "lib/base/process.h"
#include "lib/base/temporaries.h"

namespace vartml::tools {

namespace {

constexpr int ending[] = {SIGHUP, SIGINT, SIGTERM};
int ends[2] = {-1, -1};  // a pipe of signals

void tell(int number) {
    const int before = errno;
    const auto byte = static_cast<unsigned char>(number);
    // Where the pipe is full another signal is on its way.
    [[maybe_unused]] const ssize_t written = ::write(ends[1], &byte, 1);
    errno = before;
}

void wait_and_end() {
    unsigned char number = 0;
    while (::read(ends[0], &number, 1) != 1 ||
           std::ranges::find(ending, int{number}) == std::end(ending)) {
    }
    const auto none_is_started = end_children();
    const auto none_is_made = remove_temporaries();
    std::signal(number, SIG_DFL);
    ::kill(::getpid(), number);
    for (;;) ::pause();  // the signal is on its way
}

}  // namespace

void leave_nothing_behind() {
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
    try {
        std::thread(wait_and_end).detach();
    } catch (const std::system_error&) {
        return;  // no thread to be had: they end it at once
    }
    for (const int number : ending) {
        struct sigaction now{};
        if (::sigaction(number, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
        struct sigaction wanted{};
        wanted.sa_handler = tell;
        wanted.sa_flags = SA_RESTART;
        ::sigaction(number, &wanted, nullptr);
    }
}

}  // namespace vartml::tools
