// SPDX-License-Identifier: Apache-2.0
// The process between a worker and a camera's program. It ends the program when the lease does,
// also while the worker is stopped, hangs or has been killed.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <vartml/result.h>

namespace vartml::fleet {

/// Milliseconds since boot, sleep included: a machine that slept has lost its leases.
int64_t boot_ms();

/// One line of the log, as JSON on standard output, in one write. `cpu_s`: the processor time that
/// it took, where it is the end of something.
void log_event(const std::string& worker, const char* event, const std::string& camera,
               uint64_t epoch, const std::string& reason = "", std::optional<double> cpu_s = {});

/// Seconds of processor time, of all threads of user and system.
double cpu_s_of(int who);  // RUSAGE_SELF, or RUSAGE_CHILDREN: those that ended

struct GuardSettings {
    std::string worker, camera;
    uint64_t epoch = 0;
    int64_t until_ms = 0;              // of boot_ms: the end of the lease
    std::vector<std::string> program;  // with its arguments
    std::string input;                 // what the program reads: the camera as JSON
    bool talks = false;                // its input stays open, for what say() tells it
};

/// A worker's side of it.
class Guard {
public:
    static Result<Guard> start(const GuardSettings& settings);
    Guard(Guard&& other) noexcept;
    Guard& operator=(Guard&&) = delete;
    ~Guard();
    void renew(int64_t until_ms) const;
    /// The program reads a line, which must have no newline. One that reads none misses it.
    void say(const std::string& line) const;
    /// The program gets SIGTERM, and SIGKILL after two seconds. Does not wait.
    void stop() const;
    /// Exit status of the program, once it has ended: 128 + N for a signal.
    std::optional<int> ended();
    /// Seconds of processor time of the guard, the program and those of its children that have
    /// ended; a tenth of a second behind.
    double cpu_s() const;
    /// The last line of the program's standard output since the last call, at most 4096 bytes of
    /// it. Takes so much per call that a program that never stops printing holds nobody up.
    std::optional<std::string> last_line();
    /// All of them, of a program of ours, each up to its `longest` bytes.
    std::vector<std::string> lines(size_t longest);

private:
    struct Account;  // that the guard writes and the worker reads
    struct Unmap {
        void operator()(Account* account) const;
    };
    Guard() = default;
    void read_lines(size_t longest, const std::function<void(std::string)>& take);
    int pid_ = 0, input_ = -1, output_ = -1;
    std::unique_ptr<Account, Unmap> account_;
    std::string text_;  // of the line that has no end yet
};

}  // namespace vartml::fleet
