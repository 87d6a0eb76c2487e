// SPDX-License-Identifier: Apache-2.0
#include "gst/decode/masks.h"

#include <gst/video/gstvideometa.h>

#include <algorithm>
#include <bit>
#include <bitset>
#include <cmath>
#include <cstring>
#include <limits>

namespace vartml::gst {

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
