// SPDX-License-Identifier: Apache-2.0
#include "gst/support/keypoints.h"

#include <gst/video/gstvideometa.h>

#include <algorithm>
#include <cstring>

namespace vartml::gst {
namespace {

constexpr char mtd_name[] = "vartml-keypoints";

// Begins the bytes in the meta, which are moved and copied as they are; the points follow.
struct Header {
    GQuark skeleton;
    guint count;
};
static_assert(alignof(vartml::Keypoint) <= alignof(Header));

Header* header_of(const GstAnalyticsMtd& mtd) {
    return static_cast<Header*>(gst_analytics_relation_meta_get_mtd_data(mtd.meta, mtd.id));
}

std::span<vartml::Keypoint> points_of(Header* header) {
    return {reinterpret_cast<vartml::Keypoint*>(header + 1), header->count};
}

// The bytes were copied already.
gboolean mtd_transform(GstBuffer*, GstAnalyticsMtd* mtd, GstBuffer*, GQuark type, gpointer data) {
    if (!GST_VIDEO_META_TRANSFORM_IS_SCALE(type)) return TRUE;
    const auto* scale = static_cast<const GstVideoMetaTransform*>(data);
    const float sx = static_cast<float>(GST_VIDEO_INFO_WIDTH(scale->out_info)) /
                     static_cast<float>(GST_VIDEO_INFO_WIDTH(scale->in_info));
    const float sy = static_cast<float>(GST_VIDEO_INFO_HEIGHT(scale->out_info)) /
                     static_cast<float>(GST_VIDEO_INFO_HEIGHT(scale->in_info));
    for (vartml::Keypoint& point : points_of(header_of(*mtd))) point.x *= sx, point.y *= sy;
    return TRUE;
}

const GstAnalyticsMtdImpl* mtd_impl() {
    static const GstAnalyticsMtdImpl impl = [] {
        GstAnalyticsMtdImpl made{};
        made.name = mtd_name;
        made.mtd_meta_transform = mtd_transform;
        return made;
    }();
    return &impl;
}

// Both plugin objects carry this file, so the type is known by its name, not by its address.
bool is_keypoints(const GstAnalyticsMtd& mtd) {
    const GstAnalyticsMtdType type = gst_analytics_mtd_get_mtd_type(&mtd);
    return type == keypoints_mtd_type() ||
           !std::strcmp(gst_analytics_mtd_type_get_name(type), mtd_name);
}

}  // namespace

GstAnalyticsMtdType keypoints_mtd_type() {
    return reinterpret_cast<GstAnalyticsMtdType>(mtd_impl());
}

bool add_keypoints(GstAnalyticsRelationMeta* meta, const Keypoints& keypoints,
                   GstAnalyticsMtd* added) {
    const gsize size = sizeof(Header) + keypoints.points.size_bytes();
    auto* header =
        static_cast<Header*>(gst_analytics_relation_meta_add_mtd(meta, mtd_impl(), size, added));
    if (!header) return false;
    *header = {keypoints.skeleton, static_cast<guint>(keypoints.points.size())};
    std::ranges::copy(keypoints.points, points_of(header).begin());
    return true;
}

std::optional<Keypoints> get_keypoints(const GstAnalyticsMtd& mtd) {
    if (!is_keypoints(mtd)) return std::nullopt;
    Header* const header = header_of(mtd);
    return Keypoints{header->skeleton, points_of(header)};
}

}  // namespace vartml::gst
