// SPDX-License-Identifier: Apache-2.0
// What was found in the regions of tracked objects, so that an object is not inferred on every
// frame.
#pragma once
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "gst/infer/request.h"
#include "gst/metadata/inference.h"

namespace vartml::gst::infer {

struct ReinferRules {
    unsigned interval = 1;  // frames after which an object is inferred again; 0: never
    double growth = 0;      // part of its area by which it has grown when it is; 0: never
    bool operator==(const ReinferRules&) const = default;
};

// Results with the tensors that they hold, by track. Thread-safety: all members may be called
// concurrently; nothing else is locked or called under the mutex.
class TrackResults {
public:
    TrackResults() = default;
    ~TrackResults() { clear(); }
    TrackResults(const TrackResults&) = delete;
    TrackResults& operator=(const TrackResults&) = delete;

    // Whether the object of this region is to be inferred on frame `seq`: it never was, too long
    // ago, or has grown since.
    bool due(const FrameRegion& region, guint64 seq, const ReinferRules& rules);
    // It is inferred.
    void asked(const FrameRegion& region, guint64 seq);
    // What came out; takes references of the tensors. A result that is older than the known one, or
    // of an object that is forgotten, is none.
    void keep(uint64_t track, const Inference& result, GstClockTime pts);
    // Its inference failed: it is due again.
    void failed(uint64_t track);
    // The result of this model for an object in frames of this size, with a reference of each
    // tensor in `data`, which the caller owns. False: there is none.
    bool find(uint64_t track, const InferenceRecord* record, guint width, guint height,
              Inference& result, GstClockTime& pts);
    void clear();

private:
    struct Known {
        guint64 asked_seq = 0, seen_seq = 0;
        double area = 0;
        bool has_result = false;
        Inference result;
        GstClockTime pts = GST_CLOCK_TIME_NONE;
    };
    static void drop_result(Known& known);

    std::mutex mutex_;  // guards what is below
    std::unordered_map<uint64_t, Known> known_;
};

}  // namespace vartml::gst::infer
