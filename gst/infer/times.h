// SPDX-License-Identifier: Apache-2.0
// Differences of clock times in the unit of the statistics.
#pragma once
#include <algorithm>
#include <cstdint>

#include "gst/infer/request.h"

namespace vartml::gst::infer {

// Microseconds, 0 where `to` is the earlier one.
inline uint64_t us_between(Clock::time_point from, Clock::time_point to) {
    return uint64_t(std::max<int64_t>(
        0, std::chrono::duration_cast<std::chrono::microseconds>(to - from).count()));
}

}  // namespace vartml::gst::infer
