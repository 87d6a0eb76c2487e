// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/motion_gate.h"

namespace vartml::gst::infer {

guint64 MotionGate::age_ns(const Entry& entry) const {
    return nanoseconds_between(pts_, entered_, entry.pts, entry.entered);
}

bool MotionGate::still(const Entry& entry, const vartml::Picture& picture) {
    const Settings& settings = context_.settings.started();
    if (plan_ != entry.plan) {
        plan_ = entry.plan;
        detector_.begin(plan_->format.picture);
    }
    if (context_.no_result.exchange(false)) detector_.forget();
    return !detector_.moved(picture, settings.motion_threshold) &&
           age_ns(entry) < settings.motion_max_age_ns;
}

void MotionGate::inferred(const Entry& entry) {
    detector_.keep();
    pts_ = entry.pts;
    entered_ = entry.entered;
}

void MotionGate::stop() {
    plan_.reset();
    detector_.forget();
}

}  // namespace vartml::gst::infer
