// SPDX-License-Identifier: Apache-2.0
#include "pipelines/apps/demo/findings.h"

#include <gst/analytics/analytics.h>
#include <gst/video/gstvideometa.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace demo {
namespace {

std::string text_of(GQuark label) {
    const char* text = g_quark_to_string(label);
    return text ? text : "(no name)";
}

bool is_background(const std::string& label) {
    return !g_ascii_strcasecmp(label.c_str(), "background") ||
           !g_ascii_strcasecmp(label.c_str(), "__background__");
}

template <typename Function>
void for_each(GstAnalyticsRelationMeta* meta, GstAnalyticsMtdType type, Function&& function) {
    gpointer cursor = nullptr;
    GstAnalyticsMtd mtd;
    while (gst_analytics_relation_meta_iterate(meta, &cursor, type, &mtd)) function(mtd);
}

void add_box(const GstAnalyticsMtd& od, Findings& findings) {
    gint x = 0, y = 0, width = 0, height = 0;
    gfloat score = 0;
    if (!gst_analytics_od_mtd_get_location(&od, &x, &y, &width, &height, &score)) return;
    findings.boxes.push_back({{static_cast<double>(x), static_cast<double>(y),
                               static_cast<double>(x + width), static_cast<double>(y + height)},
                              score,
                              text_of(gst_analytics_od_mtd_get_obj_type(&od))});
}

// How many pixels of the mask have each number.
std::vector<size_t> histogram(GstBuffer* mask) {
    std::vector<size_t> counts;
    const GstVideoMeta* video = gst_buffer_get_video_meta(mask);
    GstMapInfo map;
    if (!video || !gst_buffer_map(mask, &map, GST_MAP_READ)) return counts;
    const bool wide = video->format == GST_VIDEO_FORMAT_GRAY16_LE;
    counts.assign(wide ? 65536 : 256, 0);
    for (guint y = 0; y < video->height; ++y) {
        const guint8* row = map.data + video->offset[0] + static_cast<size_t>(y) * video->stride[0];
        for (guint x = 0; x < video->width; ++x) {
            ++counts[wide ? GST_READ_UINT16_LE(row + 2 * static_cast<size_t>(x)) : row[x]];
        }
    }
    gst_buffer_unmap(mask, &map);
    return counts;
}

void add_areas(const GstAnalyticsMtd& map, const GstAnalyticsMtd& classes, Findings& findings) {
    gint x, y;
    guint w, h;
    GstBuffer* pixels = gst_analytics_segmentation_mtd_get_mask(&map, &x, &y, &w, &h);
    if (!pixels) return;
    const std::vector<size_t> counts = histogram(pixels);
    gst_buffer_unref(pixels);
    size_t all = 0;
    for (const size_t count : counts) all += count;
    const gsize regions = std::min(gst_analytics_segmentation_mtd_get_region_count(&map),
                                   gst_analytics_cls_mtd_get_length(&classes));
    for (gsize i = 0; i < regions; ++i) {
        const guint region = gst_analytics_segmentation_mtd_get_region_id(&map, i);
        const std::string label = text_of(gst_analytics_cls_mtd_get_quark(&classes, i));
        if (region >= counts.size() || !counts[region] || is_background(label)) continue;
        findings.areas.push_back(
            {label, static_cast<double>(counts[region]) / static_cast<double>(all)});
    }
}

void add_classes(const GstAnalyticsMtd& classes, Findings& findings) {
    const gsize count = gst_analytics_cls_mtd_get_length(&classes);
    const size_t first = findings.classes.size();
    for (gsize i = 0; i < count; ++i) {
        findings.classes.push_back({text_of(gst_analytics_cls_mtd_get_quark(&classes, i)),
                                    gst_analytics_cls_mtd_get_level(&classes, i)});
    }
    std::stable_sort(findings.classes.begin() + static_cast<ptrdiff_t>(first),
                     findings.classes.end(),
                     [](const Labelled& a, const Labelled& b) { return a.value > b.value; });
}

}  // namespace

void read_findings(GstBuffer* buffer, bool tracked_only, Findings& findings) {
    findings = {};
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    if (!meta) return;
    const GstAnalyticsMtdType cls = gst_analytics_cls_mtd_get_mtd_type();
    std::set<guint> owned;  // classes of a box or of a map
    const auto classes_of = [&](const GstAnalyticsMtd& owner, GstAnalyticsMtd* classes) {
        if (!gst_analytics_relation_meta_get_direct_related(
                meta, owner.id, GST_ANALYTICS_REL_TYPE_RELATE_TO, cls, nullptr, classes)) {
            return false;
        }
        owned.insert(classes->id);
        return true;
    };
    GstAnalyticsMtd related;
    for_each(meta, gst_analytics_od_mtd_get_mtd_type(), [&](const GstAnalyticsMtd& od) {
        GstAnalyticsMtd track;
        if (!tracked_only || gst_analytics_relation_meta_get_direct_related(
                                 meta, od.id, GST_ANALYTICS_REL_TYPE_ANY,
                                 gst_analytics_tracking_mtd_get_mtd_type(), nullptr, &track))
            add_box(od, findings);
        classes_of(od, &related);
    });
    for_each(meta, gst_analytics_segmentation_mtd_get_mtd_type(), [&](const GstAnalyticsMtd& mask) {
        if (classes_of(mask, &related)) {
            add_areas(mask, related, findings);
        } else {
            ++findings.masks;
        }
    });
    for_each(meta, cls, [&](const GstAnalyticsMtd& classes) {
        if (!owned.contains(classes.id)) add_classes(classes, findings);
    });
    // Types of the plugins; upstream has none for these.
    for_each(meta, GST_ANALYTICS_MTD_TYPE_ANY, [&](const GstAnalyticsMtd& mtd) {
        const char* name = gst_analytics_mtd_type_get_name(gst_analytics_mtd_get_mtd_type(&mtd));
        findings.keypoints += name && !std::strcmp(name, "vartml-keypoints");
        findings.embeddings += name && !std::strcmp(name, "vartml-embedding");
    });
}

}  // namespace demo
