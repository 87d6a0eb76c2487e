// SPDX-License-Identifier: Apache-2.0
#include "gst/decode/results.h"

#include <algorithm>
#include <bit>
#include <bitset>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include <gst/analytics/analytics.h>
#include <gst/video/gstvideometa.h>

#include <vartml/postprocess.h>

#include "gst/metadata/mtd.h"

namespace vartml::gst {

// Masks as upstream's segmentation metadata.

// The values of a class map's pixels but the one of all bits (none), ascending.
std::vector<guint> regions_in(const vartml::Mask& map, const uint8_t* pixels);

// Adds a GRAY8 picture, GRAY16_LE for pixels of two bytes, with a copy of the pixels, over the
// rectangle of the frame that the mask covers, corners rounded to nearest. Returns false when the
// meta cannot grow.
bool add_mask(GstAnalyticsRelationMeta* meta, const vartml::Mask& mask, const uint8_t* pixels,
              GstSegmentationType type, std::span<const guint> regions, GstAnalyticsMtd* added);

namespace {

// ours: classes beyond this many are looked up each time
constexpr int32_t most_quarks = 1 << 20;

// Turned boxes may reach beyond the frame; this far a float has whole numbers and an int its room.
bool near(const vartml::Detection& d) {
    constexpr float far_away = 1 << 24;
    return d.x0 >= -far_away && d.y0 >= -far_away && d.x1 <= far_away && d.y1 <= far_away;
}

void relate(GstAnalyticsRelationMeta* meta, guint from, guint to) {
    gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, from, to);
}

void add_details(GstAnalyticsRelationMeta* meta, const vartml::Decoded& decoded,
                 const vartml::Detection& d, guint od, const ResultContext& context) {
    GstAnalyticsMtd mtd;
    if (d.keypoints) {
        const Keypoints keypoints{
            context.skeleton, std::span(decoded.keypoints).subspan(d.first_keypoint, d.keypoints)};
        if (add_keypoints(meta, keypoints, &mtd)) relate(meta, od, mtd.id);
    }
    if (d.mask < 0) return;
    const vartml::Mask& mask = decoded.masks[static_cast<size_t>(d.mask)];
    guint region = 1;
    if (add_mask(meta, mask, decoded.mask_pixels.data() + mask.first,
                 GST_SEGMENTATION_TYPE_INSTANCE, {&region, 1}, &mtd)) {
        relate(meta, od, mtd.id);
    }
}

bool add_box(GstAnalyticsRelationMeta* meta, const vartml::Decoded& decoded,
             const vartml::Detection& d, GQuark label, const ResultContext& context) {
    if (!near(d)) return false;
    const int x0 = static_cast<int>(std::lround(d.x0)), y0 = static_cast<int>(std::lround(d.y0));
    const int x1 = static_cast<int>(std::lround(d.x1)), y1 = static_cast<int>(std::lround(d.y1));
    GstAnalyticsODMtd od;
    GstAnalyticsClsMtd cls;
    if (x1 <= x0 || y1 <= y0 ||
        !gst_analytics_relation_meta_add_oriented_od_mtd(meta, label, x0, y0, x1 - x0, y1 - y0,
                                                         d.angle, d.score, &od)) {
        return false;
    }
    if (gst_analytics_relation_meta_add_one_cls_mtd(meta, d.score, label, &cls)) {
        relate(meta, od.id, cls.id);
    }
    if (context.has_inference) relate(meta, od.id, context.inference_id);
    if (context.region_od >= 0) {
        gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_IS_PART_OF, od.id,
                                                 static_cast<guint>(context.region_od));
    }
    add_details(meta, decoded, d, od.id, context);
    return true;
}

// What belongs to the whole picture or region.
void relate_to_picture(GstAnalyticsRelationMeta* meta, guint id, const ResultContext& context) {
    if (context.has_inference) relate(meta, id, context.inference_id);
    if (context.region_od >= 0) relate(meta, static_cast<guint>(context.region_od), id);
}

void add_classes(GstAnalyticsRelationMeta* meta, const std::vector<vartml::Classification>& classes,
                 LabelQuarks& quarks, const ResultContext& context) {
    std::vector<gfloat> scores;
    std::vector<GQuark> labels;
    for (const vartml::Classification& c : classes) {
        scores.push_back(c.score);
        labels.push_back(quarks[c.class_id]);
    }
    GstAnalyticsClsMtd cls;
    if (!gst_analytics_relation_meta_add_cls_mtd(meta, scores.size(), scores.data(), labels.data(),
                                                 &cls)) {
        return;
    }
    relate_to_picture(meta, cls.id, context);
}

void add_class_map(GstAnalyticsRelationMeta* meta, const vartml::Decoded& decoded,
                   const vartml::Mask& map, LabelQuarks& quarks, const ResultContext& context) {
    const uint8_t* const pixels = decoded.mask_pixels.data() + map.first;
    const std::vector<guint> regions = regions_in(map, pixels);
    if (regions.empty()) return;
    GstAnalyticsMtd mask, cls;
    if (!add_mask(meta, map, pixels, GST_SEGMENTATION_TYPE_SEMANTIC, regions, &mask)) return;
    relate_to_picture(meta, mask.id, context);
    std::vector<gfloat> scores(regions.size(), -1);
    std::vector<GQuark> labels;
    for (const guint region : regions) labels.push_back(quarks[static_cast<int32_t>(region)]);
    if (gst_analytics_relation_meta_add_cls_mtd(meta, scores.size(), scores.data(), labels.data(),
                                                &cls)) {
        relate(meta, mask.id, cls.id);
    }
}

void add_picture_details(GstAnalyticsRelationMeta* meta, const vartml::Decoded& decoded,
                         LabelQuarks& quarks, const ResultContext& context) {
    GstAnalyticsMtd mtd;
    if (!decoded.classes.empty()) add_classes(meta, decoded.classes, quarks, context);
    for (const vartml::Mask& map : decoded.class_maps) {
        add_class_map(meta, decoded, map, quarks, context);
    }
    if (decoded.detections.empty() && !decoded.keypoints.empty() &&
        add_keypoints(meta, {context.skeleton, decoded.keypoints}, &mtd)) {
        relate_to_picture(meta, mtd.id, context);
    }
    if (!decoded.embedding.empty() && add_embedding(meta, decoded.embedding, &mtd)) {
        relate_to_picture(meta, mtd.id, context);
    }
    if (!decoded.text.empty() && add_text_line(meta, {decoded.text, decoded.text_score}, &mtd)) {
        relate_to_picture(meta, mtd.id, context);
    }
}

}  // namespace

GQuark LabelQuarks::operator[](int32_t class_id) {
    if (class_id < 0 || class_id >= most_quarks) {
        return g_quark_from_string(decoder_->label(class_id).c_str());
    }
    const auto index = static_cast<size_t>(class_id);
    if (index >= quarks_.size()) quarks_.resize(index + 1, 0);
    if (!quarks_[index]) quarks_[index] = g_quark_from_string(decoder_->label(class_id).c_str());
    return quarks_[index];
}

unsigned add_results(GstBuffer* buffer, const vartml::Decoded& decoded, LabelQuarks& quarks,
                     const ResultContext& context) {
    if (decoded.detections.empty() && decoded.classes.empty() && decoded.class_maps.empty() &&
        decoded.keypoints.empty() && decoded.embedding.empty() && decoded.text.empty()) {
        return 0;
    }
    GstAnalyticsRelationMetaInitParams params = {128, 16384};
    GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta_full(buffer, &params);
    if (!meta) return 0;
    unsigned boxes = 0;
    for (const vartml::Detection& detection : decoded.detections) {
        boxes += add_box(meta, decoded, detection, quarks[detection.class_id], context);
    }
    add_picture_details(meta, decoded, quarks, context);
    return boxes;
}

static_assert(std::endian::native == std::endian::little, "wide masks are written as they are");

namespace {

template <typename Pixel>
std::vector<guint> values_in(const vartml::Mask& map, const uint8_t* pixels) {
    constexpr size_t none = std::numeric_limits<Pixel>::max();
    std::bitset<none + 1> found;
    for (size_t i = 0; i < size_t(map.width) * map.height; ++i) {
        Pixel pixel;
        std::memcpy(&pixel, pixels + i * sizeof pixel, sizeof pixel);
        found.set(pixel);
    }
    std::vector<guint> values;
    for (size_t value = 0; value < none; ++value) {
        if (found[value]) values.push_back(static_cast<guint>(value));
    }
    return values;
}

}  // namespace

std::vector<guint> regions_in(const vartml::Mask& map, const uint8_t* pixels) {
    return map.pixel_bytes == 2 ? values_in<uint16_t>(map, pixels)
                                : values_in<uint8_t>(map, pixels);
}

bool add_mask(GstAnalyticsRelationMeta* meta, const vartml::Mask& mask, const uint8_t* pixels,
              GstSegmentationType type, std::span<const guint> regions, GstAnalyticsMtd* added) {
    const gsize row = gsize(mask.width) * mask.pixel_bytes, size = row * mask.height;
    GstBuffer* buffer = gst_buffer_new_allocate(nullptr, size, nullptr);
    gst_buffer_fill(buffer, 0, pixels, size);
    // Rows are dense; without these numbers GStreamer would take them for multiples of 4 bytes.
    const gsize offsets[GST_VIDEO_MAX_PLANES] = {0};
    const gint strides[GST_VIDEO_MAX_PLANES] = {static_cast<gint>(row)};
    const GstVideoFormat format =
        mask.pixel_bytes == 2 ? GST_VIDEO_FORMAT_GRAY16_LE : GST_VIDEO_FORMAT_GRAY8;
    gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, format, mask.width,
                                   mask.height, 1, offsets, strides);
    const long x0 = std::lround(mask.x0), x1 = std::lround(mask.x1);
    const long y0 = std::lround(mask.y0), y1 = std::lround(mask.y1);
    std::vector<guint> ids(regions.begin(), regions.end());
    return gst_analytics_relation_meta_add_segmentation_mtd(
        meta, buffer, type, ids.size(), ids.data(), static_cast<gint>(x0), static_cast<gint>(y0),
        static_cast<guint>(std::max(x1 - x0, 1L)), static_cast<guint>(std::max(y1 - y0, 1L)),
        added);
}

}  // namespace vartml::gst
