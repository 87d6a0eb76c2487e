// SPDX-License-Identifier: Apache-2.0
#include "pipelines/apps/live/sightings.h"

#include <gst/analytics/analytics.h>

#include <algorithm>
#include <set>
#include <utility>

namespace live {
namespace {

constexpr size_t max_known_tracks = 4096;

std::string text_of(GQuark label) {
    const char* text = g_quark_to_string(label);
    return text ? text : "";
}

int64_t track_of(GstAnalyticsRelationMeta* meta, const GstAnalyticsMtd& od) {
    GstAnalyticsMtd track;
    guint64 id = 0;
    GstClockTime first, last;
    gboolean lost;
    const bool has = gst_analytics_relation_meta_get_direct_related(
                         meta, od.id, GST_ANALYTICS_REL_TYPE_RELATE_TO,
                         gst_analytics_tracking_mtd_get_mtd_type(), nullptr, &track) &&
                     gst_analytics_tracking_mtd_get_info(&track, &id, &first, &last, &lost);
    return has ? static_cast<int64_t>(id) : -1;
}

// Classes of a detection or of a mask, which are none of the whole picture.
std::set<guint> owned_classes(GstAnalyticsRelationMeta* meta) {
    std::set<guint> owned;
    GstAnalyticsMtd owner, classes;
    for (const GstAnalyticsMtdType type :
         {gst_analytics_od_mtd_get_mtd_type(), gst_analytics_segmentation_mtd_get_mtd_type()}) {
        gpointer state = nullptr;
        while (gst_analytics_relation_meta_iterate(meta, &state, type, &owner)) {
            if (gst_analytics_relation_meta_get_direct_related(
                    meta, owner.id, GST_ANALYTICS_REL_TYPE_RELATE_TO,
                    gst_analytics_cls_mtd_get_mtd_type(), nullptr, &classes))
                owned.insert(classes.id);
        }
    }
    return owned;
}

}  // namespace

std::vector<Sighting> sightings_of(GstBuffer* buffer) {
    std::vector<Sighting> seen;
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    if (!meta) return seen;
    GstAnalyticsMtd mtd;
    gpointer state = nullptr;
    while (gst_analytics_relation_meta_iterate(meta, &state, gst_analytics_od_mtd_get_mtd_type(),
                                               &mtd)) {
        Sighting one;
        one.has_box = true;
        gst_analytics_od_mtd_get_location(&mtd, &one.x, &one.y, &one.width, &one.height,
                                          &one.score);
        one.label = text_of(gst_analytics_od_mtd_get_obj_type(&mtd));
        one.track = track_of(meta, mtd);
        seen.push_back(std::move(one));
    }
    const std::set<guint> owned = owned_classes(meta);
    state = nullptr;
    while (gst_analytics_relation_meta_iterate(meta, &state, gst_analytics_cls_mtd_get_mtd_type(),
                                               &mtd)) {
        if (owned.contains(mtd.id)) continue;
        for (gsize i = 0; i < gst_analytics_cls_mtd_get_length(&mtd); ++i) {
            Sighting one;
            one.label = text_of(gst_analytics_cls_mtd_get_quark(&mtd, i));
            one.score = gst_analytics_cls_mtd_get_level(&mtd, i);
            seen.push_back(std::move(one));
        }
    }
    return seen;
}

void Sightings::forget_old_tracks() {
    if (tracks_.size() <= max_known_tracks) return;
    std::vector<std::pair<uint64_t, int64_t>> by_age;
    for (const auto& [track, frame] : tracks_) by_age.emplace_back(frame, track);
    const auto middle = by_age.begin() + max_known_tracks / 2;
    std::nth_element(by_age.begin(), middle, by_age.end());
    for (auto old = by_age.begin(); old != middle; ++old)
        if (old->first != frame_) tracks_.erase(old->second);
}

void Sightings::frame(std::vector<Sighting> seen) {
    ++frame_;
    for (auto& [label, one] : classes_) one.now = 0;
    for (const Sighting& sighting : seen) {
        Class& one = classes_[sighting.label];
        one.label = sighting.label;
        one.frames += one.now++ == 0;
        if (sighting.track < 0) continue;
        const auto [known, is_new] = tracks_.try_emplace(sighting.track, frame_);
        known->second = frame_;
        one.tracks += is_new;
    }
    forget_old_tracks();
    newest_ = std::move(seen);
}

std::vector<Sightings::Class> Sightings::classes() const {
    std::vector<Class> all;
    for (const auto& [label, one] : classes_) all.push_back(one);
    return all;
}

}  // namespace live
