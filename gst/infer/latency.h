// SPDX-License-Identifier: Apache-2.0
// What a live pipeline is told about the time that frames are held, and when that must rise.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>

#include "gst/infer/context.h"

namespace vartml::gst::infer {

// The time to promise for work that took `times_us` in a quiet moment; reorders them; 0 without
// any. `shared`: it is done by the processors of the host, which also decode, draw and encode. Then
// twice the median, if that is more than the 95th percentile: one lost time slice fits in. Else the
// 99th percentile.
uint64_t promise_us(std::span<uint32_t> times_us, bool shared);

// Whether 95 of 100 frames are held no longer than was promised. One frame that a busy host delays
// must not delay all later ones.
class LatencyPromise {
public:
    // A frame was held for `held_us`. If that is the fourth of the last 64 above the promise, what
    // to promise instead: the shortest of the four.
    std::optional<uint64_t> frame(uint64_t held_us, uint64_t promised_us);

private:
    static constexpr unsigned window = 64, too_many = 4;
    std::array<uint64_t, window> held_{};
    unsigned next_ = 0;
};

// The runs of a frame of each stream that shares the model, as far as they were measured.
uint64_t expected_run_us(const Lane& lane);

// The answer to the latency query. Thread-safety: all members may be called concurrently. The mutex
// is held for arithmetic alone.
class Latency {
public:
    explicit Latency(Context& context) : context_(context) {}
    void start();
    // Whether pre-processing was measured, and what it took.
    bool measured() const { return pre_us_ != 0; }
    void set_preprocess(uint64_t us) { pre_us_ = us; }
    // What the query is answered must hold for these frames; tells the application where it rises.
    void promise(const Lane& lane, GstClockTime frame_duration, bool live);
    // `lane` is that of the present model, if there is any: other streams may have come to it
    // since.
    GstClockTime answer(const Lane* lane, bool live);
    // Of a live stream: a frame was held between the two, without the wait for downstream. The
    // application hears of a rise once a second at most.
    void held(Clock::time_point entered, Clock::time_point ready);

private:
    GstClockTime promised(const Lane& lane, GstClockTime frame_duration, bool live) const;

    Context& context_;
    std::atomic<uint64_t> pre_us_{0};
    std::mutex mutex_;                               // guards all below
    GstClockTime frame_duration_ = GST_SECOND / 30;  // of the plan in use
    GstClockTime measured_ = 0;  // promised for pre-processing and run, and what was seen later
    LatencyPromise promise_;
    bool rose_ = false;  // and no message told
    Clock::time_point posted_;
};

}  // namespace vartml::gst::infer
