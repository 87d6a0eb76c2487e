// SPDX-License-Identifier: Apache-2.0
// What vartmldecode counts.
#pragma once
#include <gst/gst.h>

#include <array>

namespace vartml::gst {

// One frame.
struct DecodedFrame {
    bool decoded = false;
    guint boxes = 0, suppressed = 0, not_finite = 0;
    guint reused = 0;  // results that an earlier frame was decoded to
    guint32 time_us = 0;
};

// Since start. Thread-safety: none.
class DecodeStats {
public:
    void add(const DecodedFrame& frame);
    // Structure vartml-decode-stats; the caller owns it.
    GstStructure* structure() const;

private:
    guint64 frames_ = 0, decoded_ = 0, boxes_ = 0, suppressed_ = 0, not_finite_ = 0, reused_ = 0,
            timed_ = 0;
    std::array<guint32, 1024> times_us_{};  // of the last decoded frames, as a ring
};

}  // namespace vartml::gst
