// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/result_writer.h"

#include <algorithm>
#include <atomic>

#include "gst/infer/regions.h"
#include "gst/infer/trace.h"
#include "gst/support/in_place.h"
#include "gst/support/tensor_meta.h"

namespace vartml::gst::infer {

bool KnownResult::begin(GstClockTime pts, Clock::time_point entered) {
    if (count_ > 0 && entered < entered_) return false;  // it came late
    forget();
    pts_ = pts;
    entered_ = entered;
    return true;
}

void KnownResult::add(const Inference& result) {
    for (GstBuffer* data : result.data) gst_buffer_ref(data);
    if (count_ == results_.size()) results_.emplace_back();
    results_[count_++] = result;
}

void KnownResult::forget() {
    for (Inference& result : std::span(results_).first(count_)) {
        for (GstBuffer* data : result.data) gst_buffer_unref(data);
        result.data.clear();
        result.record.reset();
    }
    count_ = 0;
}

std::span<const Inference> KnownResult::of(const InferenceRecord* record,
                                           const std::string& stream_id, unsigned width,
                                           unsigned height) const {
    if (count_ == 0) return {};
    const Inference& first = results_.front();
    const bool same = first.record.get() == record && first.stream_id == stream_id &&
                      first.frame_width == width && first.frame_height == height;
    return same ? std::span(results_).first(count_) : std::span<const Inference>();
}

guint64 KnownResult::age_ns(GstClockTime pts, Clock::time_point entered) const {
    return nanoseconds_between(pts_, entered_, pts, entered);
}

void ResultWriter::stop() {
    scratch_ = Inference();
    known_.forget();
}

// Metadata needs a writable buffer. Its memory is shared by the copy, except where a memory forbids
// it. nullptr after posting that the copy is forbidden.
GstBuffer* ResultWriter::make_writable(GstBuffer* buffer) {
    if (gst_buffer_is_writable(buffer)) return buffer;
    uint64_t bytes = 0;
    for (guint i = 0; i < gst_buffer_n_memory(buffer); ++i) {
        GstMemory* memory = gst_buffer_peek_memory(buffer, i);
        if (GST_MEMORY_IS_NO_SHARE(memory)) bytes += memory->size;
    }
    // Who else had it, such as a thread of a decoder, may have let it go meanwhile: then it is
    // given back itself.
    GstBuffer* copy = nullptr;
    bool copied = false;
    prepare_writable(buffer, &copy, copied);
    if (copy == buffer) return buffer;
    gst_buffer_unref(buffer);
    if (copy && context_.copies.count(CopyReason::make_writable, bytes)) gst_clear_buffer(&copy);
    return copy;
}

// One inference, or the record that there was none (`request` is nullptr), in `scratch_`, whose
// tensors are not its own.
void ResultWriter::describe(const Entry& entry, const Request* request) {
    static std::atomic<guint64> results{0};
    const FramePlan& plan = *entry.plan;
    Inference& i = scratch_;
    i.status = i.fate = entry.status;
    i.result_id = i.result_seq = i.age_ns = 0;
    i.stream_id = plan.stream_id;
    i.frame_seq = entry.seq;
    i.frame_width = plan.format.picture.width;
    i.frame_height = plan.format.picture.height;
    const FrameRegion region =
        request ? request->region : FrameRegion{0, 0, int(i.frame_width), int(i.frame_height), -1};
    i.region_x = region.x;
    i.region_y = region.y;
    i.region_width = region.width;
    i.region_height = region.height;
    i.region_od = region.od;
    i.tile = region.tile;
    i.tiles = region.tiles;
    i.resize = plan.preprocess.resize;
    const bool whole = plan.regions.size() == 1 && plan.regions.front().preprocessor;
    i.to_frame = request ? request->to_frame
                 : whole ? plan.regions.front().preprocessor->to_frame()
                         : vartml::Affine{};
    i.pre_us = i.wait_us = i.run_us = 0;
    i.total_us = us_between(entry.entered, Clock::now());
    i.batch_fill = 0;
    i.record = plan.lane->record();
    i.data.clear();
    if (request && entry.status == InferenceStatus::inferred) {
        i.result_id = ++results;
        i.result_seq = entry.seq;
        i.pre_us = request->pre_us;
        i.wait_us = us_between(request->submitted, request->started);
        i.run_us = us_between(request->started, request->finished);
        i.batch_fill = request->batch_fill;
        i.data = request->data;
    }
}

void ResultWriter::log(const Inference& i) const {
    const bool region = i.region_width != int(i.frame_width) || i.region_od >= 0;
    GST_CAT_LEVEL_LOG(GST_CAT_DEFAULT, region ? GST_LEVEL_TRACE : GST_LEVEL_LOG, context_.element,
                      "frame %" G_GUINT64_FORMAT ": %s (%s), result of %" G_GUINT64_FORMAT
                      ", %" G_GUINT64_FORMAT " us old; region %d,%d %dx%d; pre %" G_GUINT64_FORMAT
                      " wait %" G_GUINT64_FORMAT " run %" G_GUINT64_FORMAT
                      " total %" G_GUINT64_FORMAT " us",
                      i.frame_seq, status_nick(i.status), status_nick(i.fate), i.result_seq,
                      i.age_ns / 1000, i.region_x, i.region_y, i.region_width, i.region_height,
                      i.pre_us, i.wait_us, i.run_us, i.total_us);
}

// What is in `scratch_`.
void ResultWriter::attach_one(const Entry& entry, GstBuffer* buffer) {
    const Inference& i = scratch_;
    log(i);
    if (i.has_result()) add_tensors(buffer, i.record->views, entry.plan->group, i.data);
    add_inference(buffer, i, i.has_result() ? 100 : 0);
}

void ResultWriter::remember(const Entry& entry) {
    if (!known_.begin(entry.pts, entry.entered)) return;
    for (const Request* r = entry.requests; r; r = r->next) {
        describe(entry, r);
        known_.add(scratch_);
    }
    scratch_.data.clear();
}

// The newest result, on a frame without one of its own.
void ResultWriter::attach_known(const Entry& entry, GstBuffer* buffer, const Inference& known) {
    Inference& i = scratch_;
    i = known;
    i.status = InferenceStatus::carried;
    i.fate = entry.status;
    i.frame_seq = entry.seq;
    i.age_ns = known_.age_ns(entry.pts, entry.entered);
    i.total_us = us_between(entry.entered, Clock::now());
    attach_one(entry, buffer);
    i.data.clear();
}

// What is in `scratch_`, of a tracked object.
void ResultWriter::remember_track(const Entry& entry, uint64_t track) {
    if (scratch_.has_result())
        context_.tracks.keep(track, scratch_, entry.pts);
    else
        context_.tracks.failed(track);
}

// Of tracked objects that were not inferred on this frame: the result of an earlier one, placed
// where the object is now.
void ResultWriter::attach_known_tracks(const Entry& entry, GstBuffer* buffer) {
    const std::shared_ptr<const RegionRules> rules = context_.settings.rules();
    const vartml::PictureInfo& picture = entry.plan->format.picture;
    find_tracked_regions(buffer, *rules, picture.width, picture.height, tracked_);
    Inference& i = scratch_;
    for (const FrameRegion& region : tracked_) {
        bool inferred = !region.track;
        for (const Request* r = entry.requests; r && !inferred; r = r->next)
            inferred = r->region.track == region.track;
        GstClockTime pts;
        if (inferred || !context_.tracks.find(region.track, entry.plan->lane->record().get(),
                                              picture.width, picture.height, i, pts))
            continue;
        const double sx = double(region.width) / i.region_width;
        const double sy = double(region.height) / i.region_height;
        vartml::Affine& map = i.to_frame;
        map.a *= sx, map.b *= sx, map.c = region.x + (map.c - i.region_x) * sx;
        map.d *= sy, map.e *= sy, map.f = region.y + (map.f - i.region_y) * sy;
        i.region_x = region.x, i.region_y = region.y;
        i.region_width = region.width, i.region_height = region.height;
        i.region_od = region.od;
        i.status = InferenceStatus::carried;
        i.fate = entry.status;
        i.frame_seq = entry.seq;
        i.age_ns = GST_CLOCK_TIME_IS_VALID(pts) && entry.pts >= pts ? entry.pts - pts : 0;
        i.total_us = us_between(entry.entered, Clock::now());
        attach_one(entry, buffer);
        for (GstBuffer* data : i.data) gst_buffer_unref(data);
        i.data.clear();
        context_.stats.track_carried();
    }
}

GstBuffer* ResultWriter::attach(Entry& entry, GstBuffer* buffer) {
    buffer = make_writable(buffer);
    if (!buffer) return nullptr;
    const vartml::PictureInfo& picture = entry.plan->format.picture;
    const bool own = entry.requests && entry.status == InferenceStatus::inferred;
    std::span<const Inference> known;
    const bool still = entry.status == InferenceStatus::skipped_still;
    if (!own && (entry.keeps_rate() || still))
        known = known_.of(entry.plan->lane->record().get(), entry.plan->stream_id, picture.width,
                          picture.height);
    if (!known.empty()) {
        context_.stats.carried(known_.age_ns(entry.pts, entry.entered) / 1000);
        for (const Inference& result : known) attach_known(entry, buffer, result);
        return buffer;
    }
    if (still) context_.no_result = true;
    const bool kept = entry.keeps_rate() || context_.settings.started().motion_threshold > 0;
    const bool keep = own && kept && known_.begin(entry.pts, entry.entered);
    Request* request = entry.requests;
    do {
        if (request && request->region.roi_type)
            request->region.od = detection_of(buffer, request->region);
        describe(entry, request);
        attach_one(entry, buffer);
        if (keep) known_.add(scratch_);
        if (request && request->region.track) remember_track(entry, request->region.track);
        request = request ? request->next : nullptr;
    } while (request);
    scratch_.data.clear();
    if (context_.settings.reinfers()) attach_known_tracks(entry, buffer);
    return buffer;
}

}  // namespace vartml::gst::infer
