// SPDX-License-Identifier: Apache-2.0
// Whether a frame needs no inference because it shows what the last inferred one showed.
#pragma once
#include <atomic>
#include <memory>

#include <vartml/motion.h>

#include "gst/infer/context.h"

namespace vartml::gst::infer {

// Thread-safety: the streaming thread has it.
class MotionGate {
public:
    explicit MotionGate(Context& context) : context_(context) {}

    bool on() const { return context_.settings.started().motion_threshold > 0; }
    // Whether the frame is like the last that was inferred, which is not too old; a pass over the
    // picture.
    bool still(const Entry& entry, const vartml::Picture& picture);
    // The frame that was looked at last is inferred.
    void inferred(const Entry& entry);
    void stop();

private:
    guint64 age_ns(const Entry& entry) const;

    Context& context_;
    vartml::MotionDetector detector_;
    std::shared_ptr<const FramePlan> plan_;   // of the frame that was looked at last
    GstClockTime pts_ = GST_CLOCK_TIME_NONE;  // of the frame that was inferred
    Clock::time_point entered_;
};

}  // namespace vartml::gst::infer
