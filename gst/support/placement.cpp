// SPDX-License-Identifier: Apache-2.0
#include "gst/support/placement.h"

#include <gst/analytics/analytics.h>
#include <gst/video/gstvideometa.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "gst/metadata/inference.h"
#include "gst/metadata/mtd.h"

namespace vartml::gst {
namespace {

constexpr guint nowhere = G_MAXUINT;

void copy_meta(GstMeta* meta, GstBuffer* from, GstBuffer* to) {
    GstMetaTransformCopy copy = {FALSE, 0, static_cast<gsize>(-1)};
    meta->info->transform_func(to, meta, from, _gst_meta_transform_copy, &copy);
}

// Rounded to nearest; what others wrote may be anywhere.
int edge(double at) {
    constexpr double far_away = 1 << 24;
    return static_cast<int>(std::lround(std::clamp(at, -far_away, far_away)));
}

Rectangle scaled(const Placement& g, int x, int y, int width, int height) {
    const int x0 = edge(g.x + x * g.scale_x());
    const int x1 = edge(g.x + (double(x) + width) * g.scale_x());
    const int y0 = edge(g.y + y * g.scale_y());
    const int y1 = edge(g.y + (double(y) + height) * g.scale_y());
    return {x0, y0, x1 - x0, y1 - y0};
}

Rectangle clipped(const Rectangle& r, const Placement& g) {
    const int x0 = std::clamp(r.x, 0, g.main_width), y0 = std::clamp(r.y, 0, g.main_height);
    const int x1 = std::clamp(r.x + r.width, 0, g.main_width);
    const int y1 = std::clamp(r.y + r.height, 0, g.main_height);
    return {x0, y0, x1 - x0, y1 - y0};
}

// A turned box: its centre, its sides as vectors, and the direction of the first.
Rectangle turned(const Placement& g, const Rectangle& r, float& angle) {
    const double sx = g.scale_x(), sy = g.scale_y();
    const double c = std::cos(angle), s = std::sin(angle);
    const double width = r.width * std::hypot(sx * c, sy * s);
    const double height = r.height * std::hypot(sx * s, sy * c);
    const double cx = g.x + (r.x + r.width / 2.0) * sx, cy = g.y + (r.y + r.height / 2.0) * sy;
    angle = static_cast<float>(std::atan2(sy * s, sx * c));
    const int x0 = edge(cx - width / 2), y0 = edge(cy - height / 2);
    return {x0, y0, edge(cx + width / 2) - x0, edge(cy + height / 2) - y0};
}

// Copies Mtds one by one; `ids_` says where each went. Those from before `placements` ends have one
// of their own.
class Joiner {
public:
    Joiner(GstBuffer* kept, GstAnalyticsRelationMeta* from, const Placement& placement,
           std::span<const Placement> placements, GstBuffer* main, GstAnalyticsRelationMeta* to)
        : kept_(kept),
          from_(from),
          placement_(placement),
          placements_(placements),
          main_(main),
          to_(to) {}

    void run() {
        ids_.assign(gst_analytics_relation_get_length(from_), nowhere);
        find_lost();
        // Inferences refer to detections, so that they come last.
        for_all([this](const GstAnalyticsMtd& mtd) { ids_[mtd.id] = add(mtd); });
        add_inferences();
        for_all([this](const GstAnalyticsMtd& mtd) { relate(mtd.id); });
    }

private:
    const Placement& placement_of(const GstAnalyticsMtd& mtd) const {
        return mtd.id < placements_.size() ? placements_[mtd.id] : placement_;
    }

    template <typename Function>
    void for_all(Function&& function) {
        gpointer state = nullptr;
        GstAnalyticsMtd mtd;
        while (
            gst_analytics_relation_meta_iterate(from_, &state, GST_ANALYTICS_MTD_TYPE_ANY, &mtd)) {
            function(mtd);
        }
    }

    // Where the box goes; nothing where that is outside of the main picture. `angle` goes with it.
    std::optional<Rectangle> place(const GstAnalyticsMtd& mtd, float& angle, float& score) const {
        Rectangle r;
        if (!gst_analytics_od_mtd_get_oriented_location(&mtd, &r.x, &r.y, &r.width, &r.height,
                                                        &angle, &score)) {
            return std::nullopt;
        }
        const Placement& p = placement_of(mtd);
        const Rectangle box =
            angle == 0 ? clipped(scaled(p, r.x, r.y, r.width, r.height), p) : turned(p, r, angle);
        if (box.empty() || clipped(box, p).empty()) return std::nullopt;
        return box;
    }

    // Boxes that end outside, and what belongs to nothing but such boxes: their classes, tracks,
    // masks and keypoints would become those of the whole picture.
    void find_lost() {
        lost_.assign(ids_.size(), false);
        std::vector<guint> boxes;
        bool any = false;
        for_all([&](const GstAnalyticsMtd& mtd) {
            if (gst_analytics_mtd_get_mtd_type(&mtd) != gst_analytics_od_mtd_get_mtd_type()) return;
            float angle = 0, score = 0;
            boxes.push_back(mtd.id);
            any |= lost_[mtd.id] = !place(mtd, angle, score);
        });
        if (!any) return;
        const std::vector<bool> lost_boxes = lost_;
        for_all([&](const GstAnalyticsMtd& mtd) {
            const GstAnalyticsMtdType type = gst_analytics_mtd_get_mtd_type(&mtd);
            const bool stays = type == gst_analytics_od_mtd_get_mtd_type() ||
                               type == zone_mtd_type() || type == zone_visit_mtd_type();
            if (stays) return;
            size_t owners = 0, lost = 0;
            for (const guint box : boxes) {
                if (!are_related(mtd.id, box)) continue;
                ++owners;
                lost += lost_boxes[box];
            }
            lost_[mtd.id] = owners > 0 && owners == lost;
        });
    }
    bool are_related(guint a, guint b) const {
        return gst_analytics_relation_meta_get_relation(from_, a, b) !=
                   GST_ANALYTICS_REL_TYPE_NONE ||
               gst_analytics_relation_meta_get_relation(from_, b, a) != GST_ANALYTICS_REL_TYPE_NONE;
    }

    guint add(const GstAnalyticsMtd& mtd) {
        if (lost_[mtd.id]) return nowhere;
        const GstAnalyticsMtdType type = gst_analytics_mtd_get_mtd_type(&mtd);
        if (type == gst_analytics_od_mtd_get_mtd_type()) return add_od(mtd);
        if (type == gst_analytics_segmentation_mtd_get_mtd_type()) return add_mask(mtd);
        if (const auto keypoints = get_keypoints(mtd))
            return add_points(*keypoints, placement_of(mtd));
        if (const auto zone = get_zone(mtd)) return add_scaled_zone(*zone, placement_of(mtd));
        GstAnalyticsMtd found;
        for (unsigned i = 0; get_inference(kept_, i, &found); ++i)
            if (found.id == mtd.id) return nowhere;
        return add_bytes(mtd);
    }

    guint add_od(const GstAnalyticsMtd& mtd) {
        float angle = 0, score = 0;
        const auto box = place(mtd, angle, score);
        if (!box) return nowhere;
        GstAnalyticsODMtd od;
        const bool added = gst_analytics_relation_meta_add_oriented_od_mtd(
            to_, gst_analytics_od_mtd_get_obj_type(&mtd), box->x, box->y, box->width, box->height,
            angle, score, &od);
        return added ? od.id : nowhere;
    }

    // Whether it is of instances or classes cannot be asked for on 1.26, by anybody.
    guint add_mask(const GstAnalyticsMtd& mtd) {
        int x, y;
        guint width, height;
        GstBuffer* picture = gst_analytics_segmentation_mtd_get_mask(&mtd, &x, &y, &width, &height);
        if (!picture) return nowhere;
        std::vector<guint> regions(gst_analytics_segmentation_mtd_get_region_count(&mtd));
        for (gsize i = 0; i < regions.size(); ++i)
            regions[i] = gst_analytics_segmentation_mtd_get_region_id(&mtd, i);
        const Rectangle r =
            scaled(placement_of(mtd), x, y, static_cast<int>(width), static_cast<int>(height));
        const auto type =
            regions.size() == 1 ? GST_SEGMENTATION_TYPE_INSTANCE : GST_SEGMENTATION_TYPE_SEMANTIC;
        GstAnalyticsMtd mask;
        const bool added = gst_analytics_relation_meta_add_segmentation_mtd(
            to_, picture, type, regions.size(), regions.data(), r.x, r.y,
            static_cast<guint>(std::max(r.width, 1)), static_cast<guint>(std::max(r.height, 1)),
            &mask);
        return added ? mask.id : nowhere;
    }

    guint add_points(const Keypoints& keypoints, const Placement& placement) {
        std::vector<vartml::Keypoint> points(keypoints.points.begin(), keypoints.points.end());
        for (vartml::Keypoint& p : points) {
            p.x = static_cast<float>(placement.x + p.x * placement.scale_x());
            p.y = static_cast<float>(placement.y + p.y * placement.scale_y());
        }
        GstAnalyticsMtd mtd;
        return add_keypoints(to_, {keypoints.skeleton, points}, &mtd) ? mtd.id : nowhere;
    }

    guint add_scaled_zone(const Zone& zone, const Placement& placement) {
        std::vector<vartml::ZonePoint> points(zone.points.begin(), zone.points.end());
        for (vartml::ZonePoint& p : points) {
            p.x = static_cast<float>(placement.x + p.x * placement.scale_x());
            p.y = static_cast<float>(placement.y + p.y * placement.scale_y());
        }
        GstAnalyticsMtd mtd;
        return add_zone(to_, {zone.name, zone.line, zone.counts, points}, &mtd) ? mtd.id : nowhere;
    }

    // Classes, tracks, embeddings and what others invented have no coordinates: as upstream copies
    // them.
    guint add_bytes(const GstAnalyticsMtd& mtd) {
        const auto* impl =
            reinterpret_cast<const GstAnalyticsMtdImpl*>(gst_analytics_mtd_get_mtd_type(&mtd));
        const gsize size = gst_analytics_mtd_get_size(&mtd);
        GstAnalyticsMtd added;
        gpointer data = gst_analytics_relation_meta_add_mtd(to_, impl, size, &added);
        if (!data) return nowhere;
        std::memcpy(data, gst_analytics_relation_meta_get_mtd_data(from_, mtd.id), size);
        GstMetaTransformCopy copy = {FALSE, 0, static_cast<gsize>(-1)};
        if (impl->mtd_meta_transform)
            impl->mtd_meta_transform(main_, &added, kept_, _gst_meta_transform_copy, &copy);
        return added.id;
    }

    void add_inferences() {
        GstAnalyticsMtd mtd;
        for (unsigned i = 0; const Inference* inference = get_inference(kept_, i, &mtd); ++i) {
            if (is_of_lost(*inference)) continue;
            Inference copy = *inference;
            // The region is in pixels of the frame that was inferred, which may have been scaled.
            Placement inferred = placement_;
            inferred.meta_width = static_cast<int>(copy.frame_width);
            inferred.meta_height = static_cast<int>(copy.frame_height);
            const Rectangle region = scaled(inferred, copy.region_x, copy.region_y,
                                            copy.region_width, copy.region_height);
            copy.region_x = region.x, copy.region_y = region.y;
            copy.region_width = region.width, copy.region_height = region.height;
            if (copy.region_od >= 0 && static_cast<size_t>(copy.region_od) < ids_.size()) {
                const guint id = ids_[static_cast<size_t>(copy.region_od)];
                copy.region_od = id == nowhere ? -1 : static_cast<int>(id);
            }
            copy.frame_width = static_cast<unsigned>(placement_.main_width);
            copy.frame_height = static_cast<unsigned>(placement_.main_height);
            vartml::Affine& map = copy.to_frame;
            const double sx = placement_.scale_x(), sy = placement_.scale_y();
            map.a *= sx, map.b *= sx, map.c = map.c * sx + placement_.x;
            map.d *= sy, map.e *= sy, map.f = map.f * sy + placement_.y;
            const guint id = static_cast<guint>(gst_analytics_relation_get_length(to_));
            if (add_inference(main_, copy, 1)) ids_[mtd.id] = id;
        }
    }

    // The record of a box that is lost would read as one of the whole frame.
    bool is_of_lost(const Inference& i) const {
        return i.region_od >= 0 && static_cast<size_t>(i.region_od) < lost_.size() &&
               lost_[static_cast<size_t>(i.region_od)];
    }

    void relate(guint id) {
        if (ids_[id] == nowhere) return;
        gpointer state = nullptr;
        GstAnalyticsMtd related;
        while (gst_analytics_relation_meta_get_direct_related(
            from_, id, GST_ANALYTICS_REL_TYPE_ANY, GST_ANALYTICS_MTD_TYPE_ANY, &state, &related)) {
            if (ids_[related.id] == nowhere) continue;
            const GstAnalyticsRelTypes type =
                gst_analytics_relation_meta_get_relation(from_, id, related.id);
            gst_analytics_relation_meta_set_relation(to_, type, ids_[id], ids_[related.id]);
        }
    }

    GstBuffer* kept_;
    GstAnalyticsRelationMeta* from_;
    const Placement& placement_;
    std::span<const Placement> placements_;
    GstBuffer* main_;
    GstAnalyticsRelationMeta* to_;
    std::vector<guint> ids_;
    std::vector<bool> lost_;  // by id, as ids_
};

void add_regions(GstBuffer* kept, const Placement& geometry, GstBuffer* main) {
    gpointer state = nullptr;
    while (GstMeta* meta = gst_buffer_iterate_meta_filtered(
               kept, &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE)) {
        const auto* roi = reinterpret_cast<const GstVideoRegionOfInterestMeta*>(meta);
        const Rectangle r =
            clipped(scaled(geometry, static_cast<int>(roi->x), static_cast<int>(roi->y),
                           static_cast<int>(roi->w), static_cast<int>(roi->h)),
                    geometry);
        if (r.empty()) continue;
        auto* added = gst_buffer_add_video_region_of_interest_meta_id(
            main, roi->roi_type, static_cast<guint>(r.x), static_cast<guint>(r.y),
            static_cast<guint>(r.width), static_cast<guint>(r.height));
        added->id = roi->id;
        added->parent_id = roi->parent_id;
        for (const GList* param = roi->params; param; param = param->next) {
            gst_video_region_of_interest_meta_add_param(
                added, gst_structure_copy(static_cast<const GstStructure*>(param->data)));
        }
    }
}

}  // namespace

GstBuffer* keep_metadata(GstBuffer* frame) {
    GstBuffer* kept = gst_buffer_new();
    gpointer state = nullptr;
    while (GstMeta* meta = gst_buffer_iterate_meta(frame, &state)) {
        if (meta->info->api == GST_ANALYTICS_RELATION_META_API_TYPE ||
            meta->info->api == GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE) {
            copy_meta(meta, frame, kept);
        }
    }
    drop_inference_tensors(kept);
    return kept;
}

void add_metadata(GstBuffer* kept, const Placement& placement, GstBuffer* main) {
    add_regions(kept, placement, main);
    GstAnalyticsRelationMeta* from = gst_buffer_get_analytics_relation_meta(kept);
    if (!from) return;
    const GstAnalyticsRelationMetaInitParams params = {128, 16384};
    GstAnalyticsRelationMeta* to = gst_buffer_add_analytics_relation_meta_full(
        main, const_cast<GstAnalyticsRelationMetaInitParams*>(&params));
    if (to) Joiner(kept, from, placement, {}, main, to).run();
}

void move_boxes(GstBuffer* frame, int width, int height, std::span<const BoxMove> moves) {
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(frame);
    if (!meta || moves.empty() || width <= 0 || height <= 0) return;
    // An Mtd cannot be changed: all are copied.
    GstBuffer* before = gst_buffer_new();
    copy_meta(reinterpret_cast<GstMeta*>(meta), frame, before);
    gst_buffer_remove_meta(frame, reinterpret_cast<GstMeta*>(meta));
    GstAnalyticsRelationMeta* from = gst_buffer_get_analytics_relation_meta(before);
    const Placement same = {width, height, width, height, 0, 0, double(width), double(height)};
    std::vector<Placement> placements(from ? gst_analytics_relation_get_length(from) : 0, same);
    for (const BoxMove& move : moves) {
        if (move.od >= placements.size() || move.from.empty() || move.from == move.to) continue;
        Placement p = {move.from.width, move.from.height, width, height};
        p.width = move.to.width, p.height = move.to.height;
        p.x = move.to.x - move.from.x * p.scale_x();
        p.y = move.to.y - move.from.y * p.scale_y();
        placements[move.od] = p;
        gpointer state = nullptr;
        GstAnalyticsMtd part;
        while (gst_analytics_relation_meta_get_direct_related(
            from, move.od, GST_ANALYTICS_REL_TYPE_ANY, GST_ANALYTICS_MTD_TYPE_ANY, &state, &part)) {
            const bool od =
                gst_analytics_mtd_get_mtd_type(&part) == gst_analytics_od_mtd_get_mtd_type();
            if (!od && part.id < placements.size()) placements[part.id] = p;
        }
    }
    GstAnalyticsRelationMetaInitParams params = {128, 16384};
    GstAnalyticsRelationMeta* to = gst_buffer_add_analytics_relation_meta_full(frame, &params);
    if (from && to) Joiner(before, from, same, placements, frame, to).run();
    gst_buffer_unref(before);
}

}  // namespace vartml::gst
