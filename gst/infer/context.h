// SPDX-License-Identifier: Apache-2.0
// What the parts of vartmlinfer share: its pads, settings and counters, and the things that are on
// their way through it.
#pragma once
#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gst/infer/frame_tensor.h"
#include "gst/infer/lane.h"
#include "gst/infer/policy.h"
#include "gst/infer/request.h"
#include "gst/infer/settings.h"
#include "gst/infer/stats.h"
#include "gst/infer/track_results.h"
#include "gst/support/picture_info.h"

namespace vartml::gst::infer {

// A part of every frame of a plan.
struct PlannedRegion {
    FrameRegion region;
    std::optional<vartml::Preprocessor> preprocessor;  // absent where the frame is the tensor
};

// What frames under the same caps and model share; immutable.
struct FramePlan {
    std::shared_ptr<Lane> lane;
    FrameFormat format;
    vartml::PreprocessOptions preprocess;
    std::optional<FrameTensor> direct;   // the frame is the tensor already
    std::vector<PlannedRegion> regions;  // of every frame; none: frames bring their own
    TensorGroup group;                   // what the tensors are called
    std::string stream_id;
    TraceStream trace_stream;  // the stream in a trace
    GstClockTime frame_duration = 0;
};

// How much later a frame is than another: by their times, else by when they came; 0 where it is
// not.
inline guint64 nanoseconds_between(GstClockTime from_pts, Clock::time_point from_entered,
                                   GstClockTime to_pts, Clock::time_point to_entered) {
    if (GST_CLOCK_TIME_IS_VALID(from_pts) && GST_CLOCK_TIME_IS_VALID(to_pts) && to_pts >= from_pts)
        return to_pts - from_pts;
    const auto age = std::chrono::nanoseconds(to_entered - from_entered).count();
    return age > 0 ? guint64(age) : 0;
}

// One thing on its way, in order.
struct Entry {
    enum class Kind : uint8_t { none, frame, event, query, swap };
    Kind kind = Kind::none;
    GstMiniObject* object = nullptr;  // a reference, except for queries
    // frames
    InferenceStatus status = InferenceStatus::inferred;
    Request* requests = nullptr;  // of an inferred frame, one per region
    unsigned inferences = 0;      // how many of them
    std::shared_ptr<const FramePlan> plan;
    guint64 seq = 0;  // of a swap: of the first frame after it
    TraceFrame trace_frame;
    Clock::time_point entered;
    // When it leaves with or without its own result; not at the end of time: it keeps its rate.
    Clock::time_point leave_by = Clock::time_point::max();
    GstClockTime pts = GST_CLOCK_TIME_NONE;  // of a swap: of the first frame after it
    vartml::Error error;                     // why a frame is `failed`
    // swaps
    std::shared_ptr<Lane> old_lane, new_lane;

    bool keeps_rate() const { return leave_by != Clock::time_point::max(); }
    // With the signal's mutex: its result is there, or it has none.
    bool done() const {
        for (const Request* r = requests; r; r = r->next)
            if (!r->done) return false;
        return true;
    }
    // When the last of its runs ended; only if it has any.
    Clock::time_point finished() const {
        Clock::time_point last = requests->finished;
        for (const Request* r = requests->next; r; r = r->next) last = std::max(last, r->finished);
        return last;
    }
    // The stream is done with its requests. Without the mutex.
    void release_requests() {
        while (Request* request = requests) {
            requests = request->next;
            plan->lane->release(request);
        }
    }
};

// Settings, counters and copies lock themselves; the signal's mutex guards the queue of frames, the
// counts of those between the pads and the state of requests, because threads wait on all of them
// together.
struct Context {
    GstElement* const element;
    GstPad* const sink;
    GstPad* const src;
    const std::shared_ptr<Signal> signal = std::make_shared<Signal>();
    LiveSettings settings = {};
    Stats stats = {};
    Copies copies{element, settings, stats};
    // The last frame that was to be inferred has no result that those like it could carry: the next
    // one is inferred.
    std::atomic<bool> no_result{false};
    TrackResults tracks = {};
};

}  // namespace vartml::gst::infer
