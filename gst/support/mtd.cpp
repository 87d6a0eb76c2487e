// SPDX-License-Identifier: Apache-2.0
#include "gst/support/mtd.h"

#include <gst/video/gstvideometa.h>

#include <algorithm>
#include <cstring>

namespace vartml::gst {
namespace {

// What begins the bytes of an Mtd, which are moved and copied as they are; `count` numbers, points
// or letters follow.
struct KeypointsHeader {
    GQuark skeleton;
    guint count;
};
struct EmbeddingHeader {
    guint count;
};
struct TextHeader {
    gfloat score;
    guint count;
};
static_assert(alignof(vartml::Keypoint) <= alignof(KeypointsHeader));

template <typename T, typename Header>
std::span<T> behind(Header* header) {
    return {reinterpret_cast<T*>(header + 1), header->count};
}

template <typename Header>
Header* header_of(const GstAnalyticsMtd& mtd) {
    return static_cast<Header*>(gst_analytics_relation_meta_get_mtd_data(mtd.meta, mtd.id));
}

// nullptr for another type. Both plugin objects carry this file, so the type is known by its name,
// not by its address.
template <typename Header>
Header* find(const GstAnalyticsMtd& mtd, const GstAnalyticsMtdImpl& impl) {
    const GstAnalyticsMtdType type = gst_analytics_mtd_get_mtd_type(&mtd);
    const bool is = type == reinterpret_cast<GstAnalyticsMtdType>(&impl) ||
                    !std::strcmp(gst_analytics_mtd_type_get_name(type), impl.name);
    return is ? header_of<Header>(mtd) : nullptr;
}

template <typename T, typename Header>
bool add(GstAnalyticsRelationMeta* meta, const GstAnalyticsMtdImpl& impl, const Header& header,
         const T* items, GstAnalyticsMtd* added) {
    auto* made = static_cast<Header*>(gst_analytics_relation_meta_add_mtd(
        meta, &impl, sizeof(Header) + header.count * sizeof(T), added));
    if (!made) return false;
    *made = header;
    std::copy_n(items, header.count, behind<T>(made).begin());
    return true;
}

// The bytes were copied already.
gboolean scale_points(GstBuffer*, GstAnalyticsMtd* mtd, GstBuffer*, GQuark type, gpointer data) {
    if (!GST_VIDEO_META_TRANSFORM_IS_SCALE(type)) return TRUE;
    const auto* scale = static_cast<const GstVideoMetaTransform*>(data);
    const float sx = static_cast<float>(GST_VIDEO_INFO_WIDTH(scale->out_info)) /
                     static_cast<float>(GST_VIDEO_INFO_WIDTH(scale->in_info));
    const float sy = static_cast<float>(GST_VIDEO_INFO_HEIGHT(scale->out_info)) /
                     static_cast<float>(GST_VIDEO_INFO_HEIGHT(scale->in_info));
    for (auto& point : behind<vartml::Keypoint>(header_of<KeypointsHeader>(*mtd)))
        point.x *= sx, point.y *= sy;
    return TRUE;
}

// The bytes were copied already, and no change of the picture changes what it looked like or what
// was read.
gboolean keep(GstBuffer*, GstAnalyticsMtd*, GstBuffer*, GQuark, gpointer) {
    return TRUE;
}

constexpr GstAnalyticsMtdImpl impl_of(const char* name,
                                      decltype(GstAnalyticsMtdImpl::mtd_meta_transform) transform) {
    GstAnalyticsMtdImpl impl{};
    impl.name = name;
    impl.mtd_meta_transform = transform;
    return impl;
}
constexpr GstAnalyticsMtdImpl keypoints_impl = impl_of("vartml-keypoints", scale_points);
constexpr GstAnalyticsMtdImpl embedding_impl = impl_of("vartml-embedding", keep);
constexpr GstAnalyticsMtdImpl text_impl = impl_of("vartml-text", keep);

}  // namespace

GstAnalyticsMtdType keypoints_mtd_type() {
    return reinterpret_cast<GstAnalyticsMtdType>(&keypoints_impl);
}

GstAnalyticsMtdType embedding_mtd_type() {
    return reinterpret_cast<GstAnalyticsMtdType>(&embedding_impl);
}

GstAnalyticsMtdType text_line_mtd_type() {
    return reinterpret_cast<GstAnalyticsMtdType>(&text_impl);
}

bool add_keypoints(GstAnalyticsRelationMeta* meta, const Keypoints& keypoints,
                   GstAnalyticsMtd* added) {
    const KeypointsHeader header{keypoints.skeleton, static_cast<guint>(keypoints.points.size())};
    return add(meta, keypoints_impl, header, keypoints.points.data(), added);
}

bool add_embedding(GstAnalyticsRelationMeta* meta, std::span<const float> vector,
                   GstAnalyticsMtd* added) {
    const EmbeddingHeader header{static_cast<guint>(vector.size())};
    return add(meta, embedding_impl, header, vector.data(), added);
}

bool add_text_line(GstAnalyticsRelationMeta* meta, const TextLine& line, GstAnalyticsMtd* added) {
    const TextHeader header{line.score, static_cast<guint>(line.text.size())};
    return add(meta, text_impl, header, line.text.data(), added);
}

std::optional<Keypoints> get_keypoints(const GstAnalyticsMtd& mtd) {
    auto* header = find<KeypointsHeader>(mtd, keypoints_impl);
    if (!header) return std::nullopt;
    return Keypoints{header->skeleton, behind<const vartml::Keypoint>(header)};
}

std::span<const float> get_embedding(const GstAnalyticsMtd& mtd) {
    auto* header = find<EmbeddingHeader>(mtd, embedding_impl);
    return header ? behind<const float>(header) : std::span<const float>();
}

std::optional<TextLine> get_text_line(const GstAnalyticsMtd& mtd) {
    auto* header = find<TextHeader>(mtd, text_impl);
    if (!header) return std::nullopt;
    const auto text = behind<const char>(header);
    return TextLine{{text.data(), text.size()}, header->score};
}

}  // namespace vartml::gst
