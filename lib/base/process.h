// SPDX-License-Identifier: Apache-2.0
// Runs a program as a child process.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vartml/result.h>

namespace vartml {

// Whether memory_limit is kept: not where a sanitizer reserves more address space than any limit.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool can_limit_memory = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool can_limit_memory = false;
#else
inline constexpr bool can_limit_memory = true;
#endif
#else
inline constexpr bool can_limit_memory = true;
#endif

struct Child {
    std::vector<std::string> arguments;  // the first is the program: a path, or a name in PATH
    const std::atomic<bool>* cancel = nullptr;  // set to true: the child is killed
    // Called on the calling thread for each line that the child writes to descriptor 3
    // (child_lines_fd); may be empty.
    std::function<void(std::string_view line)> on_line;
    std::chrono::milliseconds time_limit{0};  // after it the child is killed; 0 = none
    // Of address space, for each process of the child; an allocation beyond it fails. 0 = none.
    uint64_t memory_limit = 0;
};
inline constexpr int child_lines_fd = 3;

struct ChildResult {
    int exit_status = -1;  // -1: ended by a signal
    int signal = 0;
    bool cancelled = false, timed_out = false;
    std::string stderr_tail;  // the last 16 KiB of standard error
};

// A child that serves its parent, until the descriptors that they share are closed.
class ServingChild {
public:
    // Starts it; its descriptors from 3 on are `descriptors`, in this order. Its standard streams
    // are /dev/null, it inherits nothing else and leads a process group of its own. Errors:
    // not_found when the program does not exist, io with the system's reason.
    static Result<ServingChild> start(const std::vector<std::string>& arguments,
                                      std::span<const int> descriptors);
    ServingChild(ServingChild&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
    ServingChild& operator=(ServingChild&& other) noexcept {
        std::swap(pid_, other.pid_);
        return *this;
    }
    ~ServingChild();  // kills and reaps it

    // "was killed by signal 11", "ended with status 1" for a child that closed its descriptors;
    // waits for its end.
    std::string end_text();

private:
    explicit ServingChild(pid_t pid) : pid_(pid) {}
    pid_t pid_ = 0;
};

// Blocks until the child has ended and is reaped. Its standard input and output are /dev/null, it
// inherits no other descriptor, and it leads a process group that is killed as a whole.
// Errors: not_found when the program does not exist, io with the system's reason.
Result<ChildResult> run_child(const Child& child);

// Asks all children and what they started to end (SIGTERM), because this process does. None is
// started, or reaped, while the caller keeps what is returned. Not for signal handlers.
[[nodiscard]] std::unique_lock<std::mutex> end_children() noexcept;

}  // namespace vartml
