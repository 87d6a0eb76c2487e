// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/keep_rate.h"

#include <algorithm>

namespace vartml::gst::infer {

void InferenceTime::begin(uint64_t expected_us) {
    last_.fill(expected_us);
    median_us_ = expected_us;
    within_ = true;
}

void InferenceTime::add(uint64_t took_us) {
    last_[next_++ % window] = took_us;
    std::array<uint64_t, window> sorted = last_;
    std::ranges::nth_element(sorted, sorted.begin() + window / 2);
    median_us_ = sorted[window / 2];
}

bool InferenceTime::within(uint64_t most_us) {
    within_ = median_us_ <= (within_ ? most_us : most_us / 4 * 3);
    return within_;
}

void KnownResult::set(const Inference& result, GstClockTime pts, Clock::time_point entered) {
    if (result_.record && entered < entered_) return;  // it came late
    for (GstBuffer* data : result.data) gst_buffer_ref(data);
    forget();
    result_ = result;
    pts_ = pts;
    entered_ = entered;
}

void KnownResult::forget() {
    for (GstBuffer* data : result_.data) gst_buffer_unref(data);
    result_.data.clear();
    result_.record.reset();
}

const Inference* KnownResult::of(const InferenceRecord* record, const std::string& stream_id,
                                 unsigned width, unsigned height) const {
    const bool same = result_.record && result_.record.get() == record &&
                      result_.stream_id == stream_id && result_.frame_width == width &&
                      result_.frame_height == height;
    return same ? &result_ : nullptr;
}

guint64 KnownResult::age_ns(GstClockTime pts, Clock::time_point entered) const {
    if (GST_CLOCK_TIME_IS_VALID(pts) && GST_CLOCK_TIME_IS_VALID(pts_) && pts >= pts_)
        return pts - pts_;
    const auto age = std::chrono::nanoseconds(entered - entered_).count();
    return age > 0 ? guint64(age) : 0;
}

}  // namespace vartml::gst::infer
