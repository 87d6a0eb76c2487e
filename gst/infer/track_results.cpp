// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/track_results.h"

namespace vartml::gst::infer {
namespace {

constexpr guint64 frames_unseen = 300;  // ours: after which an object is forgotten

double area_of(const FrameRegion& region) {
    return double(region.width) * region.height;
}

}  // namespace

void TrackResults::drop_result(Known& known) {
    for (GstBuffer* data : known.result.data) gst_buffer_unref(data);
    known.result.data.clear();
    known.result.record.reset();
    known.has_result = false;
}

bool TrackResults::due(const FrameRegion& region, guint64 seq, const ReinferRules& rules) {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(region.track);
    if (found == known_.end()) return true;
    Known& known = found->second;
    known.seen_seq = seq;
    const bool old = rules.interval > 0 && seq - known.asked_seq >= rules.interval;
    const bool grown = rules.growth > 0 && area_of(region) > known.area * (1 + rules.growth);
    return old || grown;
}

void TrackResults::asked(const FrameRegion& region, guint64 seq) {
    const std::lock_guard lock(mutex_);
    if (!known_.contains(region.track)) {
        std::erase_if(known_, [&](auto& one) {
            const bool gone = one.second.seen_seq + frames_unseen < seq;
            if (gone) drop_result(one.second);
            return gone;
        });
    }
    Known& known = known_[region.track];
    known.asked_seq = known.seen_seq = seq;
    known.area = area_of(region);
}

void TrackResults::keep(uint64_t track, const Inference& result, GstClockTime pts) {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(track);
    if (found == known_.end()) return;
    Known& known = found->second;
    for (GstBuffer* data : result.data) gst_buffer_ref(data);
    drop_result(known);
    known.result = result;
    known.pts = pts;
    known.has_result = true;
}

void TrackResults::failed(uint64_t track) {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(track);
    if (found == known_.end()) return;
    drop_result(found->second);
    known_.erase(found);
}

bool TrackResults::find(uint64_t track, const InferenceRecord* record, guint width, guint height,
                        Inference& result, GstClockTime& pts) {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(track);
    if (found == known_.end() || !found->second.has_result ||
        found->second.result.record.get() != record)
        return false;
    if (found->second.result.frame_width != width || found->second.result.frame_height != height) {
        drop_result(found->second);
        known_.erase(found);  // due again
        return false;
    }
    result = found->second.result;
    for (GstBuffer* data : result.data) gst_buffer_ref(data);
    pts = found->second.pts;
    return true;
}

void TrackResults::clear() {
    const std::lock_guard lock(mutex_);
    for (auto& [track, known] : known_) drop_result(known);
    known_.clear();
}

}  // namespace vartml::gst::infer
