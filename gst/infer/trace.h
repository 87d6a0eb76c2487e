// SPDX-License-Identifier: Apache-2.0
// What vartmlinfer tells an open host trace besides its spans.
#pragma once
#include <algorithm>
#include <cstdint>

#include <gst/gst.h>

#include <vartml/profile.h>

#include "gst/infer/request.h"
#include "gst/metadata/inference.h"

namespace vartml::gst::infer {

// Differences of clock times in the unit of the statistics.

// Microseconds, 0 where `to` is the earlier one.
inline uint64_t us_between(Clock::time_point from, Clock::time_point to) {
    return uint64_t(std::max<int64_t>(
        0, std::chrono::duration_cast<std::chrono::microseconds>(to - from).count()));
}

}  // namespace vartml::gst::infer

// The debug category of vartmlinfer. INFO: model, device, caps, plan; DEBUG: decisions; LOG: each
// frame; TRACE: each region.

GST_DEBUG_CATEGORY_EXTERN(gst_vartml_infer_debug);
#define GST_CAT_DEFAULT gst_vartml_infer_debug

namespace vartml::gst::infer {

// Each does nothing where it is not recorded.
void trace_skip(GstElement* element, InferenceStatus status, const TraceFrame& frame);
void trace_copy(GstElement* element, const char* reason, uint64_t bytes);
void trace_caps(GstElement* element, const GstCaps* caps);
// How long the request waited for its run to begin.
void trace_wait(const Request& request);

inline TraceFrame trace_frame(uint32_t stream, GstBuffer* buffer, uint64_t seq) {
    const GstClockTime pts = GST_BUFFER_PTS(buffer);
    return HostTrace::frame(stream, GST_CLOCK_TIME_IS_VALID(pts) ? int64_t(pts) : -1, seq);
}

// Of std::chrono::steady_clock, which is CLOCK_MONOTONIC.
inline uint64_t trace_ns(Clock::time_point at) {
    return uint64_t(std::chrono::nanoseconds(at.time_since_epoch()).count());
}

}  // namespace vartml::gst::infer
