// SPDX-License-Identifier: Apache-2.0
// What the calling thread has of the open trace.
#pragma once
#include <cstdint>

#include "lib/profiling/host/ring.h"

namespace vartml::profiling {

// Its ring; nullptr: no trace is open.
TraceRing* this_threads_ring() noexcept;
// Later than all it gave on this thread before.
uint64_t rising_ns() noexcept;
// No other thread's, below 2^53.
uint64_t next_id() noexcept;

}  // namespace vartml::profiling
