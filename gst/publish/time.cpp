// SPDX-License-Identifier: Apache-2.0
#include "gst/publish/time.h"

#include <algorithm>

namespace vartml::gst {
namespace {

constexpr int64_t unix_after_ntp = 2208988800LL * GST_SECOND;  // given: RFC 5905, figure 4

std::optional<int64_t> reference_time(GstBuffer* buffer) {
    gpointer state = nullptr;
    while (GstMeta* meta = gst_buffer_iterate_meta_filtered(
               buffer, &state, GST_REFERENCE_TIMESTAMP_META_API_TYPE)) {
        const auto* reference = reinterpret_cast<const GstReferenceTimestampMeta*>(meta);
        const GstStructure* s = gst_caps_get_structure(reference->reference, 0);
        const auto time = static_cast<int64_t>(reference->timestamp);
        if (gst_structure_has_name(s, "timestamp/x-unix")) return time;
        if (gst_structure_has_name(s, "timestamp/x-ntp")) return time - unix_after_ntp;
    }
    return std::nullopt;
}

}  // namespace

std::optional<int64_t> utc_of(GstElement* element, GstBuffer* buffer, GstClockTime running_time) {
    if (const auto time = reference_time(buffer)) return time;
    if (!GST_CLOCK_TIME_IS_VALID(running_time)) return std::nullopt;
    // Until the element plays, the base time may be that of before.
    GST_OBJECT_LOCK(element);
    const bool playing = GST_STATE(element) == GST_STATE_PLAYING;
    GST_OBJECT_UNLOCK(element);
    if (!playing) return std::nullopt;
    GstClock* clock = gst_element_get_clock(element);
    if (!clock) return std::nullopt;
    // The clock counts from anywhere; it and the calendar are read together.
    const auto now = static_cast<int64_t>(gst_clock_get_time(clock));
    const int64_t utc_now = g_get_real_time() * GST_USECOND;
    gst_object_unref(clock);
    const auto then = static_cast<int64_t>(gst_element_get_base_time(element) + running_time);
    // What is not live comes before its time: it was not taken later than now.
    return std::min(utc_now, utc_now - (now - then));
}

}  // namespace vartml::gst
