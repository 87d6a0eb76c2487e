// SPDX-License-Identifier: Apache-2.0
#include "gst/infer/regions.h"

#include <gst/analytics/analytics.h>
#include <gst/video/gstvideometa.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include <vartml/tiles.h>

#include "gst/metadata/mtd.h"

namespace vartml::gst::infer {
namespace {

struct Candidate {
    FrameRegion region;
    float score;
};

bool wanted(const RegionRules& rules, GQuark type) {
    if (rules.classes.empty()) return true;
    const gchar* name = g_quark_to_string(type);
    return name && std::ranges::find(rules.classes, name) != rules.classes.end();
}

bool add_roi_metas(GstBuffer* buffer, const RegionRules& rules, std::vector<Candidate>& found) {
    gpointer state = nullptr;
    bool any = false;
    while (GstMeta* meta = gst_buffer_iterate_meta_filtered(
               buffer, &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE)) {
        const auto* roi = reinterpret_cast<const GstVideoRegionOfInterestMeta*>(meta);
        any = true;
        if (!wanted(rules, roi->roi_type)) continue;
        const auto at = [](guint v) { return int(std::min<guint>(v, G_MAXINT / 2)); };
        const int x = at(roi->x), y = at(roi->y), w = at(roi->w), h = at(roi->h);
        FrameRegion region = {x, y, w, h};
        // One of no type is as much a detection as the others: results belong to it.
        region.roi_type =
            roi->roi_type ? roi->roi_type : g_quark_from_static_string("region-of-interest");
        region.roi_x = x, region.roi_y = y, region.roi_width = w, region.roi_height = h;
        found.push_back({region, 0});
    }
    return any;
}

// Trackers behind each other count from 1 each: an object is a track among those of its label.
uint64_t object_of(GQuark label, uint64_t track) {
    return track ? track ^ uint64_t { label } << 32 : 0;
}

void add_detections(GstBuffer* buffer, const RegionRules& rules, std::vector<Candidate>& found) {
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    if (!meta) return;
    gpointer state = nullptr;
    GstAnalyticsMtd mtd;
    while (gst_analytics_relation_meta_iterate(meta, &state, gst_analytics_od_mtd_get_mtd_type(),
                                               &mtd)) {
        if (!wanted(rules, gst_analytics_od_mtd_get_obj_type(&mtd))) continue;
        Candidate one = {{}, 0};
        FrameRegion& r = one.region;
        r.od = int(mtd.id);
        r.track =
            object_of(gst_analytics_od_mtd_get_obj_type(&mtd), track_of(meta, mtd.id).value_or(0));
        if (gst_analytics_od_mtd_get_location(&mtd, &r.x, &r.y, &r.width, &r.height, &one.score))
            found.push_back(one);
    }
}

// Enlarged and clipped; false: too small.
bool fit(FrameRegion& r, const RegionRules& rules, unsigned frame_width, unsigned frame_height) {
    const double dx = rules.expand * r.width, dy = rules.expand * r.height;
    const double x0 = std::clamp(std::floor(r.x - dx), 0.0, double(frame_width));
    const double y0 = std::clamp(std::floor(r.y - dy), 0.0, double(frame_height));
    const double x1 = std::clamp(std::ceil(r.x + r.width + dx), 0.0, double(frame_width));
    const double y1 = std::clamp(std::ceil(r.y + r.height + dy), 0.0, double(frame_height));
    r.x = int(x0), r.y = int(y0);
    r.width = int(x1 - x0), r.height = int(y1 - y0);
    const int least = std::max(1, int(rules.min_size));
    return r.width >= least && r.height >= least;
}

vartml::Result<vartml::TileGrid> grid_of(const Settings& settings) {
    auto grid = vartml::parse_tile_grid(settings.tile_grid);
    if (!grid)
        return vartml::Error{grid.error().code, "property 'tile-grid': " + grid.error().message};
    grid->overlap = settings.tile_overlap;
    return grid;
}

}  // namespace

vartml::Result<unsigned> most_inferences(const Settings& settings) {
    if (settings.region == InferenceRegion::full_frame) return 1u;
    if (settings.region == InferenceRegion::roi) return std::max(1u, settings.roi_max);
    const auto grid = grid_of(settings);
    if (!grid) return grid.error();
    return grid->columns * grid->rows + settings.tile_whole_frame;
}

vartml::Result<std::vector<FrameRegion>> fixed_regions(const Settings& settings,
                                                       unsigned frame_width,
                                                       unsigned frame_height) {
    if (settings.region == InferenceRegion::roi) return std::vector<FrameRegion>{};
    const FrameRegion whole = {0, 0, int(frame_width), int(frame_height)};
    if (settings.region == InferenceRegion::full_frame) return std::vector{whole};
    const auto grid = grid_of(settings);
    if (!grid) return grid.error();
    const auto tiles = vartml::tiles_of(*grid, frame_width, frame_height);
    if (!tiles)
        return vartml::Error{tiles.error().code, "property 'tile-grid': " + tiles.error().message};
    std::vector<FrameRegion> regions;
    if (settings.tile_whole_frame) regions.push_back(whole);
    for (const vartml::Tile& tile : *tiles)
        regions.push_back({tile.x, tile.y, tile.width, tile.height});
    for (unsigned i = 0; i < regions.size(); ++i)
        regions[i].tile = i, regions[i].tiles = unsigned(regions.size());
    return regions;
}

RegionRules region_rules(const Settings& settings) {
    RegionRules rules = {
        settings.roi_source,   {},
        settings.roi_min_size, settings.roi_max,
        settings.roi_expand,   {settings.roi_reinfer_interval, settings.roi_reinfer_growth}};
    std::istringstream names(settings.roi_classes);
    for (std::string name; std::getline(names, name, ',');) {
        const size_t first = name.find_first_not_of(' ');
        if (first == std::string::npos) continue;
        rules.classes.push_back(name.substr(first, name.find_last_not_of(' ') - first + 1));
    }
    return rules;
}

bool regions_are_detections(GstBuffer* buffer, const RegionRules& rules) {
    gpointer state = nullptr;
    const bool metas = gst_buffer_iterate_meta_filtered(buffer, &state,
                                                        GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE);
    return rules.source == RoiSource::detections ||
           (rules.source == RoiSource::automatic && !metas &&
            gst_buffer_get_analytics_relation_meta(buffer));
}

namespace {

// Regions that fit, best first, as far as `wanted` takes them.
template <typename Wanted>
void find_wanted(GstBuffer* buffer, const RegionRules& rules, unsigned frame_width,
                 unsigned frame_height, std::vector<FrameRegion>& regions, Wanted&& wanted_one) {
    thread_local std::vector<Candidate> found;  // keeps its memory
    found.clear();
    regions.clear();
    const bool metas = rules.source != RoiSource::detections && add_roi_metas(buffer, rules, found);
    if (rules.source == RoiSource::detections || (rules.source == RoiSource::automatic && !metas))
        add_detections(buffer, rules, found);
    std::ranges::stable_sort(found, std::ranges::greater(), &Candidate::score);
    for (Candidate& one : found) {
        if (fit(one.region, rules, frame_width, frame_height) && wanted_one(one.region))
            regions.push_back(one.region);
    }
}

}  // namespace

void find_regions(GstBuffer* buffer, const RegionRules& rules, unsigned frame_width,
                  unsigned frame_height, std::vector<FrameRegion>& regions) {
    find_wanted(buffer, rules, frame_width, frame_height, regions,
                [&](const FrameRegion&) { return regions.size() < rules.most; });
}

unsigned find_due_regions(GstBuffer* buffer, const RegionRules& rules, unsigned frame_width,
                          unsigned frame_height, TrackResults& known, guint64 seq,
                          std::vector<FrameRegion>& regions) {
    unsigned others = 0;
    find_wanted(buffer, rules, frame_width, frame_height, regions, [&](const FrameRegion& r) {
        if (r.track && !known.due(r, seq, rules.reinfer)) {
            ++others;
            return false;
        }
        return regions.size() < rules.most;
    });
    return others;
}

void find_tracked_regions(GstBuffer* buffer, const RegionRules& rules, unsigned frame_width,
                          unsigned frame_height, std::vector<FrameRegion>& regions) {
    find_wanted(buffer, rules, frame_width, frame_height, regions,
                [](const FrameRegion& r) { return r.track != 0; });
}

int detection_of(GstBuffer* buffer, const FrameRegion& r) {
    GstAnalyticsRelationMetaInitParams params = {128, 16384};
    GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta_full(buffer, &params);
    if (!meta || !r.roi_type) return -1;
    gpointer state = nullptr;
    GstAnalyticsMtd mtd;
    while (gst_analytics_relation_meta_iterate(meta, &state, gst_analytics_od_mtd_get_mtd_type(),
                                               &mtd)) {
        int x, y, width, height;
        float score;
        const bool same =
            gst_analytics_od_mtd_get_obj_type(&mtd) == r.roi_type &&
            gst_analytics_od_mtd_get_location(&mtd, &x, &y, &width, &height, &score) &&
            x == r.roi_x && y == r.roi_y && width == r.roi_width && height == r.roi_height;
        if (same) return int(mtd.id);
    }
    const bool added = gst_analytics_relation_meta_add_od_mtd(meta, r.roi_type, r.roi_x, r.roi_y,
                                                              r.roi_width, r.roi_height, 1, &mtd);
    return added ? int(mtd.id) : -1;
}

}  // namespace vartml::gst::infer
