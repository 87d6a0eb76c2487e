// SPDX-License-Identifier: Apache-2.0
// Tensors in the caps of frames that leave: which group they are of, chosen by what downstream
// takes. A GStreamer that does not know such caps gets those of the frames.
#pragma once
#include <atomic>

#include "gst/infer/context.h"
#include "gst/infer/loader.h"
#include "gst/support/tensor_groups.h"

namespace vartml::gst::infer {

// Thread-safety: as noted. It has no lock.
class Announcer {
public:
    Announcer(Context& context, Loader& loader) : context_(context), loader_(loader) {}
    ~Announcer() { stop(); }
    Announcer(const Announcer&) = delete;
    Announcer& operator=(const Announcer&) = delete;
    void stop();

    // Streaming thread.
    void set_caps(GstCaps* caps);  // of the frames that come
    void new_model() { stale_ = true; }
    bool is_stale() const { return stale_ && caps_; }  // frames before caps are refused elsewhere
    // The caps of frames that leave, a reference; nullptr: downstream takes none of what the
    // tensors of the model may be called, `failure` says. The model is loaded.
    GstCaps* choose(Failure& failure);
    // Whether others left last.
    bool changes(GstCaps* caps);
    // What choose() chose, else the best.
    const TensorGroup& group(const Lane& lane) const;

    // Any thread.
    void relink() { stale_ = true; }
    // Of the answer to a CAPS query of upstream, in the place of tensors what they need of frames.
    // Waits while the model is loaded, where downstream wants tensors.
    void narrow(GstQuery* query);
    // CAPS query of downstream.
    bool answer(GstQuery* query) const;

private:
    Failure not_taken(const Lane& lane, const GstCaps* wanted) const;

    Context& context_;
    Loader& loader_;
    std::atomic<bool> stale_{true};
    GstCaps *caps_ = nullptr, *announced_ = nullptr;
    std::string chosen_;  // id of the group
};

}  // namespace vartml::gst::infer
