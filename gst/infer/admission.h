// SPDX-License-Identifier: Apache-2.0
// Which frames are inferred: flags of the buffer, every Nth frame, quality of service. Plain
// decisions without threads.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include <gst/gst.h>

#include "gst/infer/request.h"
#include "gst/support/inference.h"

namespace vartml::gst::infer {

class Gates {
public:
    // The frame's fate as far as it is known before the depth is looked at. One frame in `interval`
    // is inferred, one in `adapted` (not less) where a latency target asks for that. `skip_late`:
    // late frames pass without inference.
    InferenceStatus decide(GstBuffer* buffer, const GstSegment& segment, unsigned interval,
                           unsigned adapted, bool skip_late);
    void qos(double proportion, GstClockTimeDiff diff, GstClockTime timestamp);
    void reset();

    GstClockTime earliest() const { return earliest_; }
    double proportion() const { return proportion_; }

private:
    guint64 since_turn_ = 0;  // frames since the last one whose turn it was; 0: none yet
    GstClockTime earliest_ = GST_CLOCK_TIME_NONE;
    double proportion_ = 1;
};

// What a live pipeline is told about the time that frames are held, and when that must rise. Plain
// arithmetic without threads.

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

// Adapts the inference interval so that 95 of 100 inferences stay within a latency target. Plain
// arithmetic without threads.

class LatencyTarget {
public:
    struct Change {
        unsigned interval;
        uint32_t p95_us;
    };
    // An inference took `total_us`. Every 32 of them decide by their 95th percentile. Twice above
    // the target, or once above its double: the interval grows by half (to 30 at most). Where three
    // such steps do not make it a tenth shorter they are taken back, and no more are tried for a
    // while. Twice below 0.7 of the target: the interval shrinks by a quarter, not under `lowest`.
    // `target_us` 0: off.
    std::optional<Change> inference(uint64_t total_us, uint64_t target_us, unsigned lowest);
    unsigned interval() const { return interval_; }
    // Without a target the interval is the user's.
    void reset(unsigned interval = 1);

private:
    Change change(unsigned interval, uint32_t p95_us);
    std::optional<Change> widen(uint32_t p95_us);

    static constexpr unsigned window = 32;
    std::array<uint32_t, window> totals_{};
    unsigned count_ = 0;
    unsigned above_ = 0, calm_ = 0;          // decisions in a row
    unsigned steps_ = 0, before_steps_ = 1;  // of widening, and the interval before them
    uint32_t p95_before_steps_ = 0;
    unsigned resting_ = 0;  // decisions for which it is not widened
    unsigned interval_ = 1;
};

// For streams whose frames leave at their time: how long an inference takes, and the newest result,
// which frames without one of their own carry.

// The time from submission to result: the median of the last ones. Plain arithmetic without
// threads.
class InferenceTime {
public:
    void begin(uint64_t expected_us);  // as it was measured when the model was loaded
    void add(uint64_t took_us);
    uint64_t us() const { return median_us_; }
    // Whether results come within `most_us`. Once they do not, they must take a quarter less to do
    // so again.
    bool within(uint64_t most_us);
    bool is_within() const { return within_; }  // the last time

private:
    static constexpr size_t window = 9;
    std::array<uint64_t, window> last_{};
    size_t next_ = 0;
    uint64_t median_us_ = 0;
    bool within_ = true;
};

// The newest result of a stream. Thread-safety: none.
class KnownResult {
public:
    KnownResult() = default;
    KnownResult(const KnownResult&) = delete;
    KnownResult& operator=(const KnownResult&) = delete;
    ~KnownResult() { forget(); }

    // `pts` and `entered` of the frame that was inferred. Takes references of the tensors.
    void set(const Inference& result, GstClockTime pts, Clock::time_point entered);
    void forget();
    // The result, where it is of this model, stream and size of frames; else nullptr.
    const Inference* of(const InferenceRecord* record, const std::string& stream_id, unsigned width,
                        unsigned height) const;
    // How much older it is than a frame: by their times, else by when they came.
    guint64 age_ns(GstClockTime pts, Clock::time_point entered) const;

private:
    Inference result_;
    GstClockTime pts_ = GST_CLOCK_TIME_NONE;
    Clock::time_point entered_;
};

}  // namespace vartml::gst::infer
