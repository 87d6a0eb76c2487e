// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/latency_target.h"

#include <algorithm>

#include "gst/infer/stats.h"

namespace vartml::gst::infer {
namespace {

// ours
constexpr unsigned highest = 30, trial = 3, rest = 32;

}  // namespace

void LatencyTarget::reset(unsigned interval) {
    *this = LatencyTarget();
    interval_ = interval;
}

LatencyTarget::Change LatencyTarget::change(unsigned interval, uint32_t p95_us) {
    interval_ = interval;
    above_ = calm_ = 0;
    return {interval, p95_us};
}

std::optional<LatencyTarget::Change> LatencyTarget::widen(uint32_t p95_us) {
    if (steps_ >= trial || interval_ >= highest) {
        const bool helped = 10 * uint64_t(p95_us) <= 9 * uint64_t(p95_before_steps_);
        if (steps_ > 0 && !helped) {
            steps_ = 0;
            resting_ = rest;
            return change(before_steps_, p95_us);
        }
        steps_ = 0;
    }
    if (interval_ >= highest) return std::nullopt;
    if (steps_++ == 0) {
        before_steps_ = interval_;
        p95_before_steps_ = p95_us;
    }
    return change(std::min(highest, interval_ + std::max(1u, interval_ / 2)), p95_us);
}

std::optional<LatencyTarget::Change> LatencyTarget::inference(uint64_t total_us, uint64_t target_us,
                                                              unsigned lowest) {
    if (target_us == 0) {
        reset(lowest);
        return std::nullopt;
    }
    interval_ = std::max(interval_, lowest);
    totals_[count_++] = uint32_t(std::min<uint64_t>(total_us, UINT32_MAX));
    if (count_ < window) return std::nullopt;
    count_ = 0;
    const uint32_t p95 = percentile(totals_, 95);
    above_ = p95 > target_us ? above_ + 1 : 0;
    calm_ = 10 * uint64_t(p95) < 7 * target_us ? calm_ + 1 : 0;
    if (above_ == 0) steps_ = 0;
    if (calm_ >= 2 && interval_ > lowest)
        return change(interval_ - std::max(1u, (interval_ - lowest) / 4), p95);
    if (resting_ > 0) {
        --resting_;
        return std::nullopt;
    }
    return above_ >= 2 || p95 > 2 * target_us ? widen(p95) : std::nullopt;
}

}  // namespace vartml::gst::infer
