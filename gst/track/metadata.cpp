// SPDX-License-Identifier: Apache-2.0
#include "gst/track/metadata.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "gst/metadata/mtd.h"
#include "gst/support/placement.h"

namespace vartml::gst {
namespace {

// ours, so that frames of any decoder fit at once
constexpr GstAnalyticsRelationMetaInitParams expected = {128, 16384};

void add_track(GstAnalyticsRelationMeta* meta, guint od, const FrameClock& clock,
               const vartml::Identity& identity, GstClockTime last_seen) {
    GstAnalyticsTrackingMtd track;
    if (!gst_analytics_relation_meta_add_tracking_mtd(meta, identity.id,
                                                      clock.pts(identity.first_seen_ns), &track)) {
        return;
    }
    gst_analytics_tracking_mtd_update_last_seen(&track, clock.pts(last_seen));
    gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, od, track.id);
}

// The embedding that a detection relates to; empty where there is none.
std::span<const float> looks_of(GstAnalyticsRelationMeta* meta, guint od) {
    gpointer state = nullptr;
    GstAnalyticsMtd related;
    while (gst_analytics_relation_meta_get_direct_related(
        meta, od, GST_ANALYTICS_REL_TYPE_RELATE_TO, GST_ANALYTICS_MTD_TYPE_ANY, &state, &related)) {
        if (const auto embedding = get_embedding(related); !embedding.empty()) return embedding;
    }
    return {};
}

// `width`, `height`: of the upright box around it.
Turn turn_of(const GstAnalyticsODMtd& od, int width, int height) {
    int x, y, w, h;
    float angle, score;
    if (!gst_analytics_od_mtd_get_oriented_location(&od, &x, &y, &w, &h, &angle, &score) ||
        angle == 0 || width <= 0 || height <= 0)
        return {};
    return {angle, float(w) / float(width), float(h) / float(height)};
}

// An edge as a whole pixel inside the frame.
int pixel(float edge, int size) {
    constexpr float far = 1 << 24;  // a float's last whole number without gap
    return static_cast<int>(
        std::lround(std::clamp(edge, 0.f, size > 0 ? static_cast<float>(size) : far)));
}

// Of the upright box around it; that may end outside of the frame, which a turn cannot be cut at.
Rectangle before_turn(const vartml::Detection& around, const Turn& turn) {
    const float width = (around.x1 - around.x0) * turn.width;
    const float height = (around.y1 - around.y0) * turn.height;
    const float x = (around.x0 + around.x1 - width) / 2, y = (around.y0 + around.y1 - height) / 2;
    return {int(std::lround(x)), int(std::lround(y)), std::max(1, int(std::lround(width))),
            std::max(1, int(std::lround(height)))};
}

}  // namespace

void collect_boxes(GstBuffer* buffer, std::span<const GQuark> classes, TrackableBoxes& found) {
    found.boxes.clear();
    found.od_ids.clear();
    found.looks.clear();
    found.turns.clear();
    found.untracked = 0;
    bool any_looks = false;
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    gpointer state = nullptr;
    GstAnalyticsMtd od;
    while (meta && gst_analytics_relation_meta_iterate(meta, &state,
                                                       gst_analytics_od_mtd_get_mtd_type(), &od)) {
        if (track_of(meta, od.id)) continue;
        ++found.untracked;
        const GQuark label = gst_analytics_od_mtd_get_obj_type(&od);
        int x, y, w, h;
        float score;
        if ((!classes.empty() && std::ranges::find(classes, label) == classes.end()) ||
            !gst_analytics_od_mtd_get_location(&od, &x, &y, &w, &h, &score)) {
            continue;
        }
        if (const Turn turn = turn_of(od, w, h); turn.angle != 0)
            found.turns.emplace_back(found.boxes.size(), turn);
        found.od_ids.push_back(od.id);
        found.looks.push_back(looks_of(meta, od.id));
        any_looks |= !found.looks.back().empty();
        found.boxes.push_back({.x0 = static_cast<float>(x),
                               .y0 = static_cast<float>(y),
                               .x1 = static_cast<float>(x) + static_cast<float>(w),
                               .y1 = static_cast<float>(y) + static_cast<float>(h),
                               .score = score,
                               .class_id = static_cast<int32_t>(label)});
    }
    if (!any_looks) found.looks.clear();
}

void add_tracks(GstBuffer* buffer, const FrameClock& clock, GstClockTime now,
                const TrackableBoxes& found, std::span<const vartml::Identity> identities) {
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    for (size_t i = 0; meta && i < identities.size(); ++i) {
        if (identities[i].id) add_track(meta, found.od_ids[i], clock, identities[i], now);
    }
}

void note_turns(const TrackableBoxes& found, std::span<const vartml::Identity> identities,
                TrackTurns& turns) {
    turns.clear();
    for (const auto& [index, turn] : found.turns)
        if (identities[index].id) turns.emplace_back(identities[index].id, turn);
}

void add_predicted(GstBuffer* buffer, const FrameClock& clock,
                   std::span<const vartml::PredictedBox> boxes, const TrackTurns& turns,
                   FrameSize size) {
    GstAnalyticsRelationMeta* meta = nullptr;
    for (const vartml::PredictedBox& predicted : boxes) {
        const vartml::Detection& box = predicted.box;
        const auto label = static_cast<GQuark>(box.class_id);
        const int x0 = pixel(box.x0, size.width), y0 = pixel(box.y0, size.height);
        const int x1 = pixel(box.x1, size.width), y1 = pixel(box.y1, size.height);
        if (x1 <= x0 || y1 <= y0) continue;
        Rectangle place = {x0, y0, x1 - x0, y1 - y0};
        const auto found =
            std::ranges::find(turns, predicted.identity.id, &TrackTurns::value_type::first);
        const Turn turn = found == turns.end() ? Turn{} : found->second;
        if (turn.angle != 0) place = before_turn(box, turn);
        if (!meta) {
            GstAnalyticsRelationMetaInitParams params = expected;
            meta = gst_buffer_add_analytics_relation_meta_full(buffer, &params);
        }
        GstAnalyticsODMtd od;
        GstAnalyticsClsMtd cls;
        if (!meta || !gst_analytics_relation_meta_add_oriented_od_mtd(meta, label, place.x, place.y,
                                                                      place.width, place.height,
                                                                      turn.angle, box.score, &od)) {
            return;
        }
        if (label && gst_analytics_relation_meta_add_one_cls_mtd(meta, box.score, label, &cls)) {
            gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, od.id,
                                                     cls.id);
        }
        add_track(meta, od.id, clock, predicted.identity, predicted.last_seen_ns);
    }
}

namespace {

bool has_detection(GstBuffer* buffer, const GstAnalyticsMtd& inference,
                   const TrackableBoxes& found) {
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    return std::ranges::any_of(found.od_ids, [&](guint od) {
        return gst_analytics_relation_meta_get_relation(meta, od, inference.id) &
               GST_ANALYTICS_REL_TYPE_RELATE_TO;
    });
}

// Of several results the newest, and of those the first: on all frames that carry them the same.
void add(const Inference& inference, Evidence& e) {
    using Kind = Evidence::Kind;
    if (inference.status == InferenceStatus::inferred) {
        if (e.kind != Kind::inferred) e = {Kind::inferred, inference.result_id, 0};
    } else if (inference.status == InferenceStatus::carried && e.kind != Kind::inferred) {
        const bool newer = e.kind != Kind::carried || inference.age_ns < e.age_ns;
        const bool still = inference.fate == InferenceStatus::skipped_still;
        if (newer) e = {Kind::carried, inference.result_id, inference.age_ns, still};
    } else if (e.kind == Kind::none) {
        e.kind = Kind::not_inferred;
    }
}

}  // namespace

// Where a frame has no regions, who makes them says whether that means anything.
EvidenceReader::Weight EvidenceReader::weigh(const Inference& inference, bool has_detection,
                                             Models& models) {
    const InferenceRecord* record = inference.record.get();
    const std::string_view id = record ? std::string_view(record->infer_id) : "";
    const unsigned epoch = record ? record->model_epoch : 0;
    auto detector = std::ranges::find(detectors_, id, &Detector::infer_id);
    const bool known = detector != detectors_.end();
    if (has_detection && !known) detectors_.push_back({std::string(id), epoch});
    const bool has_result = inference.status == InferenceStatus::inferred ||
                            inference.status == InferenceStatus::carried;
    if (known && has_result) detector->model_epoch = epoch;
    const bool counts = known && inference.status != InferenceStatus::skipped_region;
    if (known && detector->model_epoch != epoch) models.other = true;
    if (counts && detector->model_epoch == epoch) models.same = true;
    if (has_detection) return Weight::of_a_detection;
    return counts ? Weight::of_a_detector : Weight::any;
}

Evidence EvidenceReader::read(GstBuffer* buffer, const TrackableBoxes& found) {
    Evidence evidence, of_regions;
    Weight most = Weight::any;
    Models models;
    GstAnalyticsMtd mtd;
    for (unsigned i = 0; const Inference* inference = get_inference(buffer, i, &mtd); ++i) {
        const Weight weight = weigh(*inference, has_detection(buffer, mtd, found), models);
        if (weight < most) continue;
        if (weight > most) evidence = of_regions = {};
        most = weight;
        add(*inference, inference->region_od >= 0 ? of_regions : evidence);
    }
    if (evidence.kind == Evidence::Kind::none) evidence = of_regions;
    evidence.swapped =
        models.other && !models.same && evidence.kind == Evidence::Kind::not_inferred;
    return evidence;
}

void KnownIdentities::find(std::span<const vartml::Detection> found,
                           std::vector<vartml::Identity>& identities_of) const {
    identities_of.assign(found.size(), {});
    for (size_t i = 0; i < found.size(); ++i) {
        const vartml::Detection& box = found[i];
        const auto same = std::ranges::find_if(boxes, [&](const vartml::Detection& known) {
            return known.x0 == box.x0 && known.y0 == box.y0 && known.x1 == box.x1 &&
                   known.y1 == box.y1 && known.class_id == box.class_id && known.score == box.score;
        });
        if (same != boxes.end()) identities_of[i] = identities[size_t(same - boxes.begin())];
    }
}

void move_to_predicted(GstBuffer* buffer, const TrackableBoxes& found,
                       std::span<const vartml::Identity> identities,
                       std::span<const vartml::PredictedBox> predicted, FrameSize size) {
    const auto rectangle = [](const vartml::Detection& box) {
        const int x = int(std::lround(box.x0)), y = int(std::lround(box.y0));
        return Rectangle{x, y, int(std::lround(box.x1)) - x, int(std::lround(box.y1)) - y};
    };
    std::vector<BoxMove> moves;
    for (size_t i = 0; i < identities.size(); ++i) {
        const auto track = std::ranges::find(predicted, identities[i].id,
                                             [](const auto& one) { return one.identity.id; });
        if (!identities[i].id || track == predicted.end()) continue;
        const BoxMove move = {found.od_ids[i], rectangle(found.boxes[i]), rectangle(track->box)};
        if (move.from != move.to) moves.push_back(move);
    }
    move_boxes(buffer, size.width, size.height, moves);
}

}  // namespace vartml::gst
