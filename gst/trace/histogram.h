// SPDX-License-Identifier: Apache-2.0
// Durations counted in buckets of at most 3 % width: percentiles without keeping the values.
#pragma once
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace vartml::gst::trace {

// Thread-safety: add() may be called concurrently; no locks, no allocations.
class Histogram {
public:
    void add(uint64_t ns) {
        counts_[index(ns)].fetch_add(1, std::memory_order_relaxed);
        total_.fetch_add(1, std::memory_order_relaxed);
    }
    uint64_t count() const { return total_.load(std::memory_order_relaxed); }

    // The middle of the bucket in which the value with that share (0 to 1) of values below lies.
    uint64_t percentile(double share) const {
        uint64_t left = static_cast<uint64_t>(share * static_cast<double>(count()));
        for (unsigned i = 0; i < num_buckets; ++i) {
            const uint64_t here = counts_[i].load(std::memory_order_relaxed);
            if (here > left) return middle(i);
            left -= here;
        }
        return 0;
    }

private:
    // 32 buckets for each power of two, the first of one nanosecond each; the last ends at 2^43 ns.
    static constexpr unsigned steps_log2 = 5, steps = 1 << steps_log2, last_power = 42;
    static constexpr unsigned num_buckets = (last_power - steps_log2 + 2) * steps;

    static unsigned index(uint64_t ns) {
        if (ns < steps) return static_cast<unsigned>(ns);
        if (ns >> (last_power + 1)) return num_buckets - 1;
        const unsigned power = static_cast<unsigned>(std::bit_width(ns)) - 1;
        const unsigned step = (ns >> (power - steps_log2)) & (steps - 1);
        return (power - steps_log2 + 1) * steps + step;
    }
    static uint64_t middle(unsigned index) {
        if (index < steps) return index;
        const unsigned shift = index / steps - 1;
        const uint64_t low = static_cast<uint64_t>(steps + index % steps) << shift;
        return low + ((uint64_t{1} << shift) >> 1);
    }

    std::array<std::atomic<uint32_t>, num_buckets> counts_{};
    std::atomic<uint64_t> total_{0};
};

}  // namespace vartml::gst::trace
