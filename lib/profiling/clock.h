// SPDX-License-Identifier: Apache-2.0
// The one clock of every time stamp: CLOCK_MONOTONIC in nanoseconds.
#pragma once
#include <cstdint>
#include <ctime>

namespace vartml::profiling {

inline uint64_t monotonic_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace vartml::profiling
