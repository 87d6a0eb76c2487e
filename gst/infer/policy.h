// SPDX-License-Identifier: Apache-2.0
// What copy-policy, on-fallback and input-is-tensor allow: before a model is used, and copy by
// copy.
#pragma once
#include <array>
#include <atomic>

#include "gst/infer/lane.h"
#include "gst/infer/settings.h"
#include "gst/infer/stats.h"
#include "gst/support/error.h"

namespace vartml::gst::infer {

// Each is false after filling `failure`.

// What can be refused before the first frame: CPU partitions, copies that every frame would need,
// and a model that no frame can be the tensor of.
bool allows(const Settings& settings, CopyPolicy copies, const Lane& lane, Failure& failure);
// Whether the decoder that the sidecar names can read the outputs of the model.
bool suits_head(const Lane& lane, Failure& failure);
// Whether frames under these caps can be this lane's.
bool suits_format(const Settings& settings, const Lane& lane, const GstCaps* caps,
                  Failure& failure);
// The same for caps that upstream was offered, and may be about to choose from.
bool suits_offer(const Lane& lane, GstCaps* offered, Failure& failure);
// What such a failure keeps the element from.
const char* doing_with_caps(const Failure& failure);

void warn_of_policies(GstElement* element, const Settings& settings, const Lane& lane);

// The copies that an element makes of frames and tensors. Thread-safety: all members may be called
// concurrently; no lock.
class Copies {
public:
    Copies(GstElement* element, const LiveSettings& settings, Stats& stats)
        : element_(element), settings_(settings), stats_(stats) {}
    void start();
    // True: it is forbidden, and the ERROR is posted.
    bool count(CopyReason reason, uint64_t bytes);
    // Those of a request that the runner makes. True as above.
    bool count_views(const Instance& instance);

    std::atomic<bool> import_refused{false};  // by the device, since start()

private:
    GstElement* const element_;
    const LiveSettings& settings_;
    Stats& stats_;
    std::array<std::atomic<bool>, num_copy_reasons> told_{};
};

}  // namespace vartml::gst::infer
