// SPDX-License-Identifier: Apache-2.0
// Adapts the inference interval so that 95 of 100 inferences stay within a latency target. Plain
// arithmetic without threads.
#pragma once
#include <array>
#include <cstdint>
#include <optional>

namespace vartml::gst::infer {

class LatencyTarget {
public:
    struct Change {
        unsigned interval;
        uint32_t p95_us;
    };
    // A frame has left; `total_us` is that of an inferred one. Every 64 frames the interval grows
    // by one (to 30 at most) while the 95th percentile is above the target; after 256 frames below
    // 0.7 of it the interval shrinks by one, not under `lowest`. `target_us` 0: off.
    std::optional<Change> frame(std::optional<uint64_t> total_us, uint64_t target_us,
                                unsigned lowest);
    unsigned interval() const { return interval_; }
    void reset() { *this = LatencyTarget(); }

private:
    static constexpr unsigned window = 64, calm = 4;  // of windows
    std::array<uint32_t, window> totals_{};
    unsigned inferred_ = 0, frames_ = 0, calm_windows_ = 0;
    unsigned interval_ = 1;
};

}  // namespace vartml::gst::infer
