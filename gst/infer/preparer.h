// SPDX-License-Identifier: Apache-2.0
// From a frame to requests: plans under caps and model, pre-processing or import, submission.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gst/infer/admission.h"
#include "gst/infer/announcer.h"
#include "gst/infer/context.h"
#include "gst/infer/latency.h"
#include "gst/infer/loader.h"

namespace vartml::gst::infer {

enum class Prepared : uint8_t { yes, failed, stop };

// Thread-safety: the streaming thread has it, but for relink().
class Preparer {
public:
    Preparer(Context& context, Admission& admission, Latency& latency, const Announcer& announcer)
        : context_(context), admission_(admission), latency_(latency), announcer_(announcer) {}
    ~Preparer() { stop(); }
    void stop();

    // Frames in flight keep their plans.
    void new_stream(const char* id);
    // There is another model, or its tensors have other names.
    void new_model() { plan_.reset(); }
    // Any thread: there may be other decoders than the plan knows.
    void relink() { relinked_ = true; }
    // False: they are what they were.
    bool set_caps(GstCaps* caps);

    // The plan for the frames from here on; false after posting the error.
    bool ensure_plan(const Loader& loader);
    const std::shared_ptr<const FramePlan>& plan() const { return plan_; }

    // One request per inference, of a region of the plan or, where it has none, of those `found` on
    // the frame, submitted as soon as it is filled. On failure those made so far stay in the entry.
    // The frame is mapped once, unless somebody has done that.
    Prepared prepare(Entry& entry, GstBuffer* buffer, std::span<const FrameRegion> found,
                     std::optional<MappedFrame>& frame);

private:
    bool choose_pixels(const Lane& lane, FramePlan& plan, Failure& failure);
    bool make_plan(const std::shared_ptr<Lane>& lane, Failure& failure);
    bool plan_regions(FramePlan& plan, Failure& failure);
    vartml::Result<PlannedRegion> plan_region(const FramePlan& plan, const FrameRegion& r) const;
    const PlannedRegion* region_plan(const FramePlan& plan, const FrameRegion& r,
                                     vartml::Error& error);
    void measure_preprocess(const FramePlan& plan, const vartml::Picture& picture, void* tensor);
    void fill(Entry& entry, const vartml::Picture& picture, const PlannedRegion& planned,
              Request* request);
    Prepared fill_directly(Entry& entry, GstBuffer* buffer, Request* request);

    Context& context_;
    Admission& admission_;
    Latency& latency_;
    const Announcer& announcer_;
    GstCaps* caps_ = nullptr;
    std::string stream_id_;
    std::shared_ptr<const FramePlan> plan_;
    std::vector<PlannedRegion> region_plans_;  // of regions found under plan_, the last used last
    bool measure_ = false;                     // the caps are new: measure the pre-processing
    std::shared_ptr<const InferenceRecord> doubted_;  // the model of the last warning of pixels
    std::atomic<bool> relinked_{false};
};

}  // namespace vartml::gst::infer
