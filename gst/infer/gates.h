// SPDX-License-Identifier: Apache-2.0
// Which frames are inferred: flags of the buffer, every Nth frame, quality of service. Plain
// decisions without threads.
#pragma once
#include <gst/gst.h>

#include "gst/support/inference.h"

namespace vartml::gst::infer {

class Gates {
public:
    // The frame's fate as far as it is known before the depth is looked at. One frame in `interval`
    // is inferred, one in `adapted` (not less) where a latency target asks for that. `skip_late`:
    // late frames pass without inference.
    InferenceStatus decide(GstBuffer* buffer, const GstSegment& segment, unsigned interval,
                           unsigned adapted, bool skip_late);
    void qos(double proportion, GstClockTimeDiff diff, GstClockTime timestamp);
    void reset();

    GstClockTime earliest() const { return earliest_; }
    double proportion() const { return proportion_; }

private:
    guint64 since_turn_ = 0;  // frames since the last one whose turn it was; 0: none yet
    GstClockTime earliest_ = GST_CLOCK_TIME_NONE;
    double proportion_ = 1;
};

}  // namespace vartml::gst::infer
