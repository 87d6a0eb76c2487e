// SPDX-License-Identifier: Apache-2.0
// What a thread keeps of the trace it records into.
#include <algorithm>
#include <utility>

#include "lib/profiling/clock.h"
#include "lib/profiling/host/host_trace.h"
#include "lib/profiling/host/sessions.h"

namespace vartml::profiling {
namespace {

// Without constructor and destructor, so that it can be used until the thread is gone.
struct OwnRing {
    TraceRing* ring;
    uint64_t generation;  // of the trace it belongs to
    uint64_t latest_ns;
    uint32_t ordinal;  // of the thread, from 1; 0: it has none yet
    uint32_t ids;      // that it gave
    bool is_over;      // the thread is ending
};
constinit thread_local OwnRing own{};

// Keeps the ring, and tells the writer when the thread ends.
struct RingOwner {
    std::shared_ptr<TraceRing> ring;
    RingOwner() = default;
    RingOwner(const RingOwner&) = delete;
    ~RingOwner() {
        own.is_over = true;
        own.ring = nullptr;
        if (ring) ring->retire();
    }
};

TraceRing* join_trace() noexcept {
    static thread_local RingOwner owner;
    if (own.is_over) return nullptr;
    try {
        const auto [ring, generation] = new_ring();
        if (owner.ring) owner.ring->retire();
        owner.ring = ring;
        own.ring = ring.get();
        own.generation = generation;
    } catch (...) {  // no memory: tried again with the next event
        own.ring = nullptr;
    }
    return own.ring;
}

}  // namespace

TraceRing* this_threads_ring() noexcept {
    if (own.generation == trace_generation.load(std::memory_order_relaxed)) return own.ring;
    return join_trace();
}

uint64_t rising_ns() noexcept {
    own.latest_ns = std::max(monotonic_ns(), own.latest_ns + 1);
    return own.latest_ns;
}

uint64_t next_id() noexcept {
    static constinit std::atomic<uint32_t> threads{0};
    if (own.ordinal == 0) own.ordinal = threads.fetch_add(1, std::memory_order_relaxed) + 1;
    return uint64_t{own.ordinal & 0x1FFFFF} << 32 | own.ids++;
}

}  // namespace vartml::profiling
