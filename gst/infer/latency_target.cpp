// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/latency_target.h"

#include <algorithm>

#include "gst/infer/stats.h"

namespace vartml::gst::infer {

std::optional<LatencyTarget::Change> LatencyTarget::frame(std::optional<uint64_t> total_us,
                                                          uint64_t target_us, unsigned lowest) {
    constexpr unsigned highest = 30;
    if (target_us == 0) {
        reset();
        interval_ = lowest;
        return std::nullopt;
    }
    interval_ = std::max(interval_, lowest);
    if (total_us) totals_[inferred_++] = uint32_t(std::min<uint64_t>(*total_us, UINT32_MAX));
    if (++frames_ < window) return std::nullopt;
    const unsigned count = std::exchange(inferred_, 0u);
    frames_ = 0;
    if (count == 0) return std::nullopt;
    const uint32_t p95 = percentile(std::span(totals_).first(count), 95);
    calm_windows_ = 10 * uint64_t(p95) < 7 * target_us ? calm_windows_ + 1 : 0;
    if (p95 > target_us && interval_ < highest) return Change{++interval_, p95};
    if (calm_windows_ < calm || interval_ <= lowest) return std::nullopt;
    calm_windows_ = 0;
    return Change{--interval_, p95};
}

}  // namespace vartml::gst::infer
