// SPDX-License-Identifier: Apache-2.0
#include "gst/fleet/capacity.h"

#include <algorithm>

namespace vartml::fleet {
namespace {

// ours: a burst moves no camera, and one that came takes its time to show what it costs
constexpr int64_t late_ms = 10000, calm_ms = 60000;
constexpr double calm_part = 0.7;

bool lasts(bool is, int64_t& since_ms, int64_t now_ms, int64_t long_ms) {
    if (!is) since_ms = -1;
    if (is && since_ms < 0) since_ms = now_ms;
    return is && now_ms - since_ms >= long_ms;
}

}  // namespace

void Capacity::report(size_t cameras, double worst_p95_ms, int64_t now_ms) {
    if (p95_ms_ <= 0) return;
    const bool late = lasts(worst_p95_ms > p95_ms_, late_since_ms_, now_ms, late_ms);
    // One more is worth a try where all that it said it can have is there, and is early.
    const bool calm = lasts(
        now_ < most_ && cameras >= now_ && worst_p95_ms > 0 && worst_p95_ms < calm_part * p95_ms_,
        calm_since_ms_, now_ms, calm_ms);
    if (late) now_ = std::max<size_t>(std::min(now_, cameras), 2) - 1;
    if (calm) ++now_;
    if (late || calm) late_since_ms_ = calm_since_ms_ = -1;
}

}  // namespace vartml::fleet
