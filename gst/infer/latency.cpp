// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/latency.h"

#include <algorithm>

#include "gst/infer/trace.h"

namespace vartml::gst::infer {

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

uint64_t expected_run_us(const Lane& lane) {
    const Instance& instance = lane.instance();
    const unsigned batch = instance.limits.batch;
    const unsigned runs = (lane.per_frame() + batch - 1) / batch;
    const unsigned turn = lane.is_asleep() ? 1 : instance.scheduler->runs_per_turn();
    return instance.run_promise_us * turn * runs;
}

void Latency::start() {
    const std::lock_guard lock(mutex_);
    pre_us_ = 0;
    measured_ = 0;
    promise_ = {};
}

// Of a frame: pre-processing, and unless it leaves without its own result its runs and the wait for
// a batch.
GstClockTime Latency::promised(const Lane& lane, GstClockTime frame_duration, bool live) const {
    const LiveSettings& settings = context_.settings;
    uint64_t us = expected_run_us(lane);
    std::chrono::nanoseconds wait = lane.batch_timeout(settings.batch_timeout_ms(), frame_duration);
    if (settings.keeps_rate(live) &&
        us * 1000 + uint64_t(wait.count()) > settings.longest_hold(frame_duration)) {
        us = 0;
        wait = {};
    }
    us += pre_us_;
    return (us + 999) / 1000 * GST_MSECOND + GstClockTime(wait.count());
}

void Latency::promise(const Lane& lane, GstClockTime frame_duration, bool live) {
    bool rose = false;
    {
        const std::lock_guard lock(mutex_);
        frame_duration_ = frame_duration;
        const GstClockTime want = promised(lane, frame_duration, live);
        rose = want > measured_;
        if (rose) measured_ = want;
    }
    if (rose && live)
        gst_element_post_message(context_.element,
                                 gst_message_new_latency(GST_OBJECT(context_.element)));
}

GstClockTime Latency::answer(const Lane* lane, bool live) {
    const GstClockTime chosen = context_.settings.started().latency;
    if (GST_CLOCK_TIME_IS_VALID(chosen)) return chosen;
    const std::lock_guard lock(mutex_);
    if (lane) measured_ = std::max(measured_, promised(*lane, frame_duration_, live));
    return measured_;
}

void Latency::held(Clock::time_point entered, Clock::time_point ready) {
    if (GST_CLOCK_TIME_IS_VALID(context_.settings.started().latency)) return;
    {
        const std::lock_guard lock(mutex_);
        const auto more = promise_.frame(us_between(entered, ready), measured_ / GST_USECOND);
        if (more) {
            measured_ = (*more + 999) / 1000 * GST_MSECOND;
            rose_ = true;
        }
        const auto now = Clock::now();
        if (!rose_ || now - posted_ < std::chrono::seconds(1)) return;
        rose_ = false;
        posted_ = now;
    }
    gst_element_post_message(context_.element,
                             gst_message_new_latency(GST_OBJECT(context_.element)));
}

}  // namespace vartml::gst::infer
