// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include <vartml/log.h>

#include "lib/base/text.h"

namespace vartml {
namespace {

constexpr std::string_view names[] = {"ERROR", "WARNING", "INFO", "DEBUG"};

// nullptr: the default.
struct Receiver {
    LogFunction function;
    void* user;
    const Receiver* before;
};

// Receivers are never deleted: a line in progress may still use an old one. They are few and small,
// and each holds the one before.
std::atomic<const Receiver*> receiver{nullptr};
constexpr int unset = -1;
std::atomic<int> level_now{unset};

// Of the level's word on a terminal; https://no-color.org.
constexpr std::string_view colours[] = {"\x1b[1;31m", "\x1b[1;33m", "", ""};

bool wants_colours() {
    const auto is_set = [](const char* value) { return value && *value; };
    const char* const terminal = std::getenv("TERM");
    return ::isatty(STDERR_FILENO) == 1 && !is_set(std::getenv("NO_COLOR")) &&
           (!terminal || std::string_view(terminal) != "dumb");
}

void to_stderr(LogLevel level, std::string_view origin, std::string_view text) {
    std::string line = "[vartml] ";
    const std::string_view colour = colours[static_cast<int>(level)];
    const bool is_coloured = !colour.empty() && wants_colours();
    if (is_coloured) line += colour;
    line += names[static_cast<int>(level)];
    if (is_coloured) line += "\x1b[0m";
    if (!origin.empty()) (line += ' ') += origin;
    line += ": ";
    line += printable(text, std::string::npos);
    line += '\n';
    // One write per line, so that lines of several threads do not mix.
    [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, line.data(), line.size());
}

LogLevel level_of_environment() {
    const char* wanted = std::getenv("VARTML_LOG");
    for (int i = 0; wanted && i < 4; ++i)
        if (names[i] == wanted) return static_cast<LogLevel>(i);
    return LogLevel::warning;
}

}  // namespace

void set_log_function(LogFunction function, void* user) {
    auto* const next = new Receiver{function, user, receiver.load(std::memory_order_acquire)};
    while (!receiver.compare_exchange_weak(next->before, next, std::memory_order_acq_rel)) {
    }
}

void set_log_level(LogLevel level) {
    level_now.store(static_cast<int>(level), std::memory_order_relaxed);
}

LogLevel log_level() {
    int level = level_now.load(std::memory_order_relaxed);
    if (level == unset) {
        const int wanted = static_cast<int>(level_of_environment());
        if (level_now.compare_exchange_strong(level, wanted)) level = wanted;
    }
    return static_cast<LogLevel>(level);
}

void log(LogLevel level, std::string_view origin, std::string_view text, bool force) {
    if (!force && level > log_level()) return;
    if (const Receiver* r = receiver.load(std::memory_order_acquire); r && r->function)
        r->function(level, origin, text, r->user);
    else
        to_stderr(level, origin, text);
}

}  // namespace vartml
