// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/admission.h"

#include <algorithm>

#include "gst/infer/stats.h"

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

uint64_t promise_us(std::span<uint32_t> times_us, bool shared) {
    if (!shared) return percentile(times_us, 99);
    return std::max<uint64_t>(percentile(times_us, 95), 2 * uint64_t(percentile(times_us, 50)));
}

std::optional<uint64_t> LatencyPromise::frame(uint64_t held_us, uint64_t promised_us) {
    held_[next_++ % window] = held_us;
    if (held_us <= promised_us) return std::nullopt;
    uint64_t shortest = held_us;
    unsigned above = 0;
    for (const uint64_t held : held_) {
        if (held <= promised_us) continue;
        shortest = std::min(shortest, held);
        ++above;
    }
    if (above < too_many) return std::nullopt;
    return shortest;
}

namespace {

// ours
constexpr unsigned highest = 30, trial = 3, rest = 32;

}  // namespace

void LatencyTarget::reset(unsigned interval) {
    *this = LatencyTarget();
    interval_ = interval;
}

LatencyTarget::Change LatencyTarget::change(unsigned interval, uint32_t p95_us) {
    interval_ = interval;
    above_ = calm_ = 0;
    return {interval, p95_us};
}

std::optional<LatencyTarget::Change> LatencyTarget::widen(uint32_t p95_us) {
    if (steps_ >= trial || interval_ >= highest) {
        const bool helped = 10 * uint64_t(p95_us) <= 9 * uint64_t(p95_before_steps_);
        if (steps_ > 0 && !helped) {
            steps_ = 0;
            resting_ = rest;
            return change(before_steps_, p95_us);
        }
        steps_ = 0;
    }
    if (interval_ >= highest) return std::nullopt;
    if (steps_++ == 0) {
        before_steps_ = interval_;
        p95_before_steps_ = p95_us;
    }
    return change(std::min(highest, interval_ + std::max(1u, interval_ / 2)), p95_us);
}

std::optional<LatencyTarget::Change> LatencyTarget::inference(uint64_t total_us, uint64_t target_us,
                                                              unsigned lowest) {
    if (target_us == 0) {
        reset(lowest);
        return std::nullopt;
    }
    interval_ = std::max(interval_, lowest);
    totals_[count_++] = uint32_t(std::min<uint64_t>(total_us, UINT32_MAX));
    if (count_ < window) return std::nullopt;
    count_ = 0;
    const uint32_t p95 = percentile(totals_, 95);
    above_ = p95 > target_us ? above_ + 1 : 0;
    calm_ = 10 * uint64_t(p95) < 7 * target_us ? calm_ + 1 : 0;
    if (above_ == 0) steps_ = 0;
    if (calm_ >= 2 && interval_ > lowest)
        return change(interval_ - std::max(1u, (interval_ - lowest) / 4), p95);
    if (resting_ > 0) {
        --resting_;
        return std::nullopt;
    }
    return above_ >= 2 || p95 > 2 * target_us ? widen(p95) : std::nullopt;
}

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
