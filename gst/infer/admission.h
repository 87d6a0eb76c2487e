// SPDX-License-Identifier: Apache-2.0
// Which frames are inferred: flags of the buffer, every Nth frame, quality of service, depth, and a
// latency target. Decisions alone: nothing waits here.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include <gst/gst.h>

#include "gst/infer/context.h"
#include "gst/infer/request.h"
#include "gst/metadata/inference.h"

namespace vartml::gst::infer {

// Flags, interval and quality of service. Plain arithmetic without threads.
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

// Thread-safety: members are called with the signal's mutex unless noted.
class Admission {
public:
    explicit Admission(Context& context) : context_(context) {}

    // Without the mutex, while no frame is on its way.
    void start() {
        adapted_ = 1;
        timed_epoch_.reset();
    }
    void stop() { target_.reset(); }
    // Of the stream, after a flush or activation.
    void reset() { gates_.reset(); }

    // Without the mutex, streaming thread: asks upstream, and tells what follows.
    void ask_liveness();
    bool live() const { return live_; }
    unsigned interval() const;  // any thread: one frame in so many is inferred

    // The fate of a frame as far as it is known before the depth is looked at, and when it leaves.
    InferenceStatus decide(GstBuffer* buffer, const GstSegment& segment);
    void decide_leave(Entry& entry);

    // What is between chain and push.
    struct Traffic {
        unsigned frames = 0;
        unsigned in_flight = 0;         // of these, and those that have left: without result yet
        const Entry* oldest = nullptr;  // of those that have left
    };
    enum class Verdict : uint8_t { wait, pass, infer };
    // Whether a frame with `wanted` inferences may enter now.
    Verdict verdict(const Entry& entry, unsigned wanted, const Traffic& traffic) const;

    // Inferences of this model begin; it was measured to take so long.
    void begin_model(unsigned epoch, uint64_t expected_us);
    void took(uint64_t us) { time_.add(us); }  // a frame, from submission to result
    void qos(double proportion, GstClockTimeDiff diff, GstClockTime timestamp) {
        gates_.qos(proportion, diff, timestamp);
    }
    const Gates& gates() const { return gates_; }

    // Without the mutex, by who serves the head of the queue: adapts the interval to the latency
    // target.
    void adapt(InferenceStatus status, uint64_t total_us);

private:
    bool is_early(const Entry& entry, const Traffic& traffic) const;
    size_t most_frames(const FramePlan& plan) const;

    Context& context_;
    std::atomic<bool> live_{false};
    std::atomic<unsigned> adapted_{1};
    bool regions_told_ = false;  // streaming thread: that pictures wait for them
    LatencyTarget target_;       // who serves the head of the queue
    // guarded by the mutex
    Gates gates_;
    InferenceTime time_;
    std::optional<unsigned> timed_epoch_;  // of the model that it is of
};

}  // namespace vartml::gst::infer
