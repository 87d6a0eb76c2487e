// SPDX-License-Identifier: Apache-2.0
#include "gst/source/timeline.h"

#include <algorithm>
#include <utility>

namespace vartml::gst {
namespace {

bool is_plausible(GstClockTimeDiff time, GstClockTime now) {
    const GstClockTimeDiff ahead = time - GstClockTimeDiff(now);
    return ahead <= Timeline::most_ahead && -ahead <= Timeline::most_behind;
}

}  // namespace

void Timeline::begin(bool live, bool after_outage) {
    live_ = live;
    after_outage_ = after_outage;
    first_ = true;
}

GstClockTimeDiff Timeline::first_offset(GstClockTime time, std::optional<GstClockTime> now) const {
    if (live_) {
        if (!now || is_plausible(GstClockTimeDiff(time), *now)) return 0;
        return GST_CLOCK_DIFF(time, *now);
    }
    if (!last_) return 0;
    const GstClockTime from = after_outage_ && now ? std::max(end_, *now) : end_;
    return GST_CLOCK_DIFF(time, from);
}

GstClockTime Timeline::map(std::optional<GstClockTime> time, std::optional<GstClockTime> now,
                           GstClockTime duration) {
    GstClockTimeDiff mapped;
    if (time) {
        if (first_) offset_ = first_offset(*time, now);
        mapped = GstClockTimeDiff(*time) + offset_;
        // The camera's clock was set, or its stamps began anew.
        if (live_ && now && !is_plausible(mapped, *now)) {
            offset_ = GST_CLOCK_DIFF(*time, *now);
            mapped = GstClockTimeDiff(*now);
        }
    } else {
        mapped = GstClockTimeDiff(now ? *now : end_);
    }
    const bool begins = std::exchange(first_, false);
    if (last_ && mapped <= GstClockTimeDiff(*last_)) {
        const GstClockTimeDiff later = GstClockTimeDiff(*last_) + 1 - mapped;
        // Those that follow keep their distance, so that a step back is taken once.
        if (time) offset_ += later;
        mapped += later;
    }
    const auto place = GstClockTime(std::max<GstClockTimeDiff>(mapped, 0));
    if (GST_CLOCK_TIME_IS_VALID(duration)) {
        length_ = duration;
    } else if (last_ && !begins) {
        length_ = place - *last_;
    }
    last_ = place;
    end_ = place + length_;
    return *last_;
}

}  // namespace vartml::gst
