// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/admission.h"

#include <algorithm>
#include <utility>

#include "gst/infer/stats.h"
#include "gst/infer/trace.h"

namespace vartml::gst::infer {

InferenceStatus Gates::decide(GstBuffer* buffer, const GstSegment& segment, unsigned interval,
                              unsigned adapted, bool skip_late) {
    // What fills a gap may have no picture. One that has is a picture like others: those that
    // videorate and livesync repeat are flagged, too.
    const bool empty =
        GST_BUFFER_FLAG_IS_SET(buffer, GST_BUFFER_FLAG_GAP) && gst_buffer_get_size(buffer) == 0;
    if (empty || GST_BUFFER_FLAG_IS_SET(buffer, GST_BUFFER_FLAG_CORRUPTED))
        return InferenceStatus::skipped_flag;  // the next frame has its turn
    const bool turn = since_turn_ == 0 || since_turn_ >= adapted;
    const bool wanted = since_turn_ == 0 || since_turn_ % interval == 0;
    since_turn_ = turn ? 1 : since_turn_ + 1;
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

// ---- of an element ----

unsigned Admission::interval() const {
    // What was adapted to a target says nothing once there is none.
    const bool adapts = context_.settings.latency_target_ms() != 0;
    return std::max<unsigned>(context_.settings.interval(), adapts ? adapted_.load() : 1);
}

void Admission::ask_liveness() {
    const LiveSettings& settings = context_.settings;
    GstElement* const element = context_.element;
    GstQuery* query = gst_query_new_latency();
    gboolean live = FALSE;
    if (gst_pad_peer_query(context_.sink, query))
        gst_query_parse_latency(query, &live, nullptr, nullptr);
    gst_query_unref(query);
    live_ = live;
    GST_DEBUG_OBJECT(
        element, "upstream is%s live: %s, late frames %s", live ? "" : " not",
        settings.keeps_rate(live) ? "frames keep their rate" : "results stay on their frames",
        settings.skips(live) ? "pass without inference" : "wait");
    const bool would_keep =
        settings.keep_rate() != KeepRate::no && settings.on_late() != OnLate::block;
    if (!live || settings.started().region != InferenceRegion::roi || !would_keep || regions_told_)
        return;
    regions_told_ = true;
    gst_element_message_full(
        element, GST_MESSAGE_INFO, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT,
        g_strdup("pictures of this live stream wait for the results of their regions, which belong "
                 "to the boxes of one frame and are not carried on; where pictures must leave at "
                 "their time, infer on a branch of its own and join it with vartmlmetajoin"),
        nullptr, __FILE__, GST_FUNCTION, __LINE__);
}

InferenceStatus Admission::decide(GstBuffer* buffer, const GstSegment& segment) {
    return gates_.decide(buffer, segment, context_.settings.interval(), interval(),
                         context_.settings.skips(live_));
}

// A frame waits only for results that are expected in time.
void Admission::decide_leave(Entry& entry) {
    const LiveSettings& settings = context_.settings;
    if (!settings.keeps_rate(live_)) return;
    const std::chrono::nanoseconds hold(settings.longest_hold(entry.plan->frame_duration));
    const auto hold_us =
        uint64_t(std::chrono::duration_cast<std::chrono::microseconds>(hold).count());
    const bool waited = time_.is_within(), waits = time_.within(hold_us);
    if (waits != waited) {
        GST_DEBUG_OBJECT(context_.element,
                         "results come in %" G_GUINT64_FORMAT " us of %" G_GUINT64_FORMAT
                         ": frames %s",
                         guint64(time_.us()), guint64(hold_us),
                         waits ? "wait for their own" : "carry the newest");
    }
    entry.leave_by = entry.entered + (waits ? Clock::duration(hold) : Clock::duration(0));
}

// Of a frame that keeps its rate: the device has as many runs of this stream as it makes beside
// each other, and none ends before the next frame, which is newer then. Where one does, this frame
// waits for it, the only one, so that the device goes on at once.
bool Admission::is_early(const Entry& entry, const Traffic& traffic) const {
    const Lane& lane = *entry.plan->lane;
    const Scheduler& scheduler = *lane.instance().scheduler;
    const unsigned batch = lane.instance().limits.batch;
    // In frames, as what is on its way.
    const unsigned frames_per_run = std::max(1u, batch / lane.per_frame());
    const unsigned at_once = scheduler.runs_of_stream() * batch / lane.per_frame();
    const unsigned busy = std::min(lane.depth(), std::max(1u, at_once));
    const unsigned waiting = traffic.in_flight;
    if (waiting < busy) return false;
    if (!traffic.oldest) return waiting >= lane.depth();
    const auto ends = traffic.oldest->requests->submitted + std::chrono::microseconds(time_.us());
    return waiting >= busy + frames_per_run ||
           ends > entry.entered + std::chrono::nanoseconds(entry.plan->frame_duration);
}

// Between chain and push: those that come during two turns of the device wait behind frames that
// are inferred; beyond that downstream is slow.
size_t Admission::most_frames(const FramePlan& plan) const {
    const size_t depth = plan.lane->depth();
    if (plan.frame_duration == 0) return 2 * depth;
    const uint64_t turn_ns = depth * time_.us() * 1000;
    return 2 * (depth + size_t(turn_ns / plan.frame_duration));
}

Admission::Verdict Admission::verdict(const Entry& entry, unsigned wanted,
                                      const Traffic& traffic) const {
    const Lane& lane = *entry.plan->lane;
    const bool skip = context_.settings.skips(live_);
    // Frames that pass without inference wait behind those in flight, so that the order is kept;
    // they are bounded as well.
    if (traffic.frames >= (skip ? most_frames(*entry.plan) : lane.depth())) return Verdict::wait;
    if (wanted == 0) return Verdict::pass;
    const bool infer =
        lane.available(wanted) &&
        (skip && entry.keeps_rate() ? !is_early(entry, traffic) : traffic.in_flight < lane.depth());
    return infer ? Verdict::infer : skip ? Verdict::pass : Verdict::wait;
}

void Admission::begin_model(unsigned epoch, uint64_t expected_us) {
    if (std::exchange(timed_epoch_, epoch) != epoch) time_.begin(expected_us);
}

void Admission::adapt(InferenceStatus status, uint64_t total_us) {
    const LiveSettings& settings = context_.settings;
    GstElement* const element = context_.element;
    const uint64_t target_us = uint64_t(settings.latency_target_ms()) * 1000;
    if (target_us == 0) target_.reset(settings.interval());
    std::optional<LatencyTarget::Change> change;
    if (target_us != 0 && status == InferenceStatus::inferred)
        change = target_.inference(total_us, target_us, settings.interval());
    adapted_ = target_.interval();
    if (!change) return;
    GST_DEBUG_OBJECT(element, "one frame in %u is inferred: 95 of 100 take %u us, wanted %u ms",
                     change->interval, change->p95_us, settings.latency_target_ms());
    post_structure(element,
                   gst_structure_new("vartml-slo", "interval", G_TYPE_UINT, change->interval,
                                     "p95-us", G_TYPE_UINT64, guint64(change->p95_us), "target-us",
                                     G_TYPE_UINT64, guint64(target_us), nullptr));
}

}  // namespace vartml::gst::infer
