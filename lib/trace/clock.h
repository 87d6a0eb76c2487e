// SPDX-License-Identifier: Apache-2.0
// The one clock of every time stamp: CLOCK_MONOTONIC in nanoseconds; and the CPU time of a thread.
#pragma once
#include <cstdint>
#include <ctime>

namespace vartml::profiling {

inline uint64_t read_clock_ns(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(now.tv_nsec);
}

inline uint64_t monotonic_ns() {
    return read_clock_ns(CLOCK_MONOTONIC);
}

// That the calling thread has spent.
inline uint64_t thread_cpu_ns() {
    return read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

}  // namespace vartml::profiling
