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
    // An inference took `total_us`. Every 32 of them decide by their 95th percentile. Twice above
    // the target, or once above its double: the interval grows by half (to 30 at most). Where three
    // such steps do not make it a tenth shorter they are taken back, and no more are tried for a
    // while. Twice below 0.7 of the target: the interval shrinks by a quarter, not under `lowest`.
    // `target_us` 0: off.
    std::optional<Change> inference(uint64_t total_us, uint64_t target_us, unsigned lowest);
    unsigned interval() const { return interval_; }
    // Without a target the interval is the user's.
    void reset(unsigned interval = 1);

private:
    Change change(unsigned interval, uint32_t p95_us);
    std::optional<Change> widen(uint32_t p95_us);

    static constexpr unsigned window = 32;
    std::array<uint32_t, window> totals_{};
    unsigned count_ = 0;
    unsigned above_ = 0, calm_ = 0;          // decisions in a row
    unsigned steps_ = 0, before_steps_ = 1;  // of widening, and the interval before them
    uint32_t p95_before_steps_ = 0;
    unsigned resting_ = 0;  // decisions for which it is not widened
    unsigned interval_ = 1;
};

}  // namespace vartml::gst::infer
