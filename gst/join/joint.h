// SPDX-License-Identifier: Apache-2.0
// The state of vartmlmetajoin and what it does with frames of both branches.
#pragma once
#include <gst/gst.h>

#include <condition_variable>
#include <mutex>
#include <optional>

#include "gst/join/matcher.h"
#include "gst/join/properties.h"
#include "gst/join/scale.h"

namespace vartml::gst {

struct JoinCounts {
    guint64 frames = 0, matched = 0, unmatched = 0, late = 0, timeouts = 0;
};

// What is known of a branch.
struct JoinBranch {
    GstSegment segment;
    bool eos = false, flushing = false;
    GstClockTime position = GST_CLOCK_TIME_NONE;  // running time that it has reached
    int width = 0, height = 0, par_n = 1, par_d = 1;
    GstClockTime frame_duration = GST_CLOCK_TIME_NONE;
    JoinBranch() { gst_segment_init(&segment, GST_FORMAT_TIME); }
    // Not caps: they outlive a flush.
    void restart() { position = GST_CLOCK_TIME_NONE, eos = false; }
};

struct Joint {
    std::mutex
        mutex;  // guards all below; no other lock is taken and nothing called while it is held
    std::condition_variable changed;
    JoinBranch main, meta;
    Matcher matcher;
    JoinCounts counts;
    JoinSettings settings;  // since start
    std::optional<JoinGeometry> region;
    bool live = false, latency_known = false;
    GstClockTime latency = 0;
    GstClockTime wanted = GST_CLOCK_TIME_NONE;  // by the picture that waits
    bool deadline_passed = false;
    guint64 deadline = 0;  // number of the last
    bool matched_before = false, pts_warned = false;
    unsigned unmatched_in_a_row = 0;
};

}  // namespace vartml::gst
