// SPDX-License-Identifier: Apache-2.0
// What a live pipeline is told about the time that frames are held, and when that must rise. Plain
// arithmetic without threads.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace vartml::gst::infer {

// The time to promise for work that took `times_us` in a quiet moment; reorders them; 0 without
// any. `shared`: it is done by the processors of the host, which also decode, draw and encode. Then
// twice the median, if that is more than the 95th percentile: one lost time slice fits in. Else the
// 99th percentile.
uint64_t promise_us(std::span<uint32_t> times_us, bool shared);

// Whether 95 of 100 frames are held no longer than was promised. One frame that a busy host delays
// must not delay all later ones.
class LatencyPromise {
public:
    // A frame was held for `held_us`. If that is the fourth of the last 64 above the promise, what
    // to promise instead: the shortest of the four.
    std::optional<uint64_t> frame(uint64_t held_us, uint64_t promised_us);

private:
    static constexpr unsigned window = 64, too_many = 4;
    std::array<uint64_t, window> held_{};
    unsigned next_ = 0;
};

}  // namespace vartml::gst::infer
