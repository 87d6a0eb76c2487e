// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/gates.h"

namespace vartml::gst::infer {

InferenceStatus Gates::decide(GstBuffer* buffer, const GstSegment& segment, unsigned interval,
                              unsigned adapted, bool skip_late) {
    const bool turn = since_turn_ == 0 || since_turn_ >= adapted;
    const bool wanted = since_turn_ == 0 || since_turn_ % interval == 0;
    since_turn_ = turn ? 1 : since_turn_ + 1;
    if (GST_BUFFER_FLAG_IS_SET(buffer, GST_BUFFER_FLAG_GAP) ||
        GST_BUFFER_FLAG_IS_SET(buffer, GST_BUFFER_FLAG_CORRUPTED)) {
        return InferenceStatus::skipped_flag;
    }
    if (!turn) return wanted ? InferenceStatus::skipped_slo : InferenceStatus::skipped_interval;
    if (skip_late && GST_CLOCK_TIME_IS_VALID(earliest_) && GST_BUFFER_PTS_IS_VALID(buffer) &&
        segment.format == GST_FORMAT_TIME) {
        const guint64 running =
            gst_segment_to_running_time(&segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
        if (GST_CLOCK_TIME_IS_VALID(running) && running <= earliest_)
            return InferenceStatus::skipped_late;
    }
    return InferenceStatus::inferred;
}

void Gates::qos(double proportion, GstClockTimeDiff diff, GstClockTime timestamp) {
    proportion_ = proportion;
    if (!GST_CLOCK_TIME_IS_VALID(timestamp)) {
        earliest_ = GST_CLOCK_TIME_NONE;
        return;
    }
    // As GstBaseTransform and the decoders do: a late frame makes room for as much again.
    const GstClockTimeDiff ahead = diff > 0 ? 2 * diff : diff;
    earliest_ = ahead < 0 && GstClockTime(-ahead) > timestamp ? 0 : timestamp + GstClockTime(ahead);
}

void Gates::reset() {
    *this = Gates();
}

}  // namespace vartml::gst::infer
