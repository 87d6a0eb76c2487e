// SPDX-License-Identifier: Apache-2.0
#include "gst/metadata/mtd.h"

#include <gst/vartml/mtd.h>
#include <gst/video/gstvideometa.h>

#include <algorithm>

#include "gst/metadata/frame_matrix.h"

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
struct ZoneHeader {
    vartml::ZoneCounts counts;
    GQuark name;
    guint line, count;
};
struct VisitHeader {
    ZoneVisit visit;
    guint count;
};
static_assert(alignof(vartml::ZonePoint) <= alignof(ZoneHeader));
static_assert(alignof(vartml::Keypoint) <= alignof(KeypointsHeader));

template <typename T, typename Header>
std::span<T> behind(Header* header) {
    return {reinterpret_cast<T*>(header + 1), header->count};
}

template <typename Header>
Header* header_of(const GstAnalyticsMtd& mtd) {
    return static_cast<Header*>(gst_analytics_relation_meta_get_mtd_data(mtd.meta, mtd.id));
}

// nullptr for another type.
template <typename Header>
Header* find(const GstAnalyticsMtd& mtd, const GstAnalyticsMtdImpl& impl) {
    const auto type = reinterpret_cast<GstAnalyticsMtdType>(&impl);
    return gst_analytics_mtd_get_mtd_type(&mtd) == type ? header_of<Header>(mtd) : nullptr;
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

// Points behind a header. The bytes were copied already.
template <typename Point, typename Header>
gboolean scale_points(GstBuffer*, GstAnalyticsMtd* mtd, GstBuffer*, GQuark type, gpointer data) {
    if (is_frame_matrix(type)) {
        const auto after = read_frame_matrix(data);
        if (!after) return FALSE;
        for (auto& point : behind<Point>(header_of<Header>(*mtd))) {
            point.x = static_cast<float>(after->a * double(point.x) + after->c);
            point.y = static_cast<float>(after->e * double(point.y) + after->f);
        }
        return TRUE;
    }
    if (!GST_VIDEO_META_TRANSFORM_IS_SCALE(type)) return TRUE;
    const auto* scale = static_cast<const GstVideoMetaTransform*>(data);
    const float sx = static_cast<float>(GST_VIDEO_INFO_WIDTH(scale->out_info)) /
                     static_cast<float>(GST_VIDEO_INFO_WIDTH(scale->in_info));
    const float sy = static_cast<float>(GST_VIDEO_INFO_HEIGHT(scale->out_info)) /
                     static_cast<float>(GST_VIDEO_INFO_HEIGHT(scale->in_info));
    for (auto& point : behind<Point>(header_of<Header>(*mtd))) point.x *= sx, point.y *= sy;
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
constexpr GstAnalyticsMtdImpl keypoints_impl =
    impl_of("vartml-keypoints", scale_points<vartml::Keypoint, KeypointsHeader>);
constexpr GstAnalyticsMtdImpl embedding_impl = impl_of("vartml-embedding", keep);
constexpr GstAnalyticsMtdImpl text_impl = impl_of("vartml-text", keep);
constexpr GstAnalyticsMtdImpl zone_impl =
    impl_of("vartml-zone", scale_points<vartml::ZonePoint, ZoneHeader>);
constexpr GstAnalyticsMtdImpl visit_impl = impl_of("vartml-zone-visit", keep);

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

GstAnalyticsMtdType zone_mtd_type() {
    return reinterpret_cast<GstAnalyticsMtdType>(&zone_impl);
}

GstAnalyticsMtdType zone_visit_mtd_type() {
    return reinterpret_cast<GstAnalyticsMtdType>(&visit_impl);
}

std::optional<guint64> track_of(GstAnalyticsRelationMeta* meta, guint od) {
    for (const auto relation : {GST_ANALYTICS_REL_TYPE_RELATE_TO, GST_ANALYTICS_REL_TYPE_CONTAIN}) {
        GstAnalyticsMtd track;
        guint64 id;
        GstClockTime first, last;
        gboolean lost;
        if (gst_analytics_relation_meta_get_direct_related(
                meta, od, relation, gst_analytics_tracking_mtd_get_mtd_type(), nullptr, &track) &&
            gst_analytics_tracking_mtd_get_info(&track, &id, &first, &last, &lost))
            return id;
    }
    return std::nullopt;
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

bool add_zone(GstAnalyticsRelationMeta* meta, const Zone& zone, GstAnalyticsMtd* added) {
    const ZoneHeader header{zone.counts, zone.name, zone.line,
                            static_cast<guint>(zone.points.size())};
    return add(meta, zone_impl, header, zone.points.data(), added);
}

bool add_zone_visit(GstAnalyticsRelationMeta* meta, const ZoneVisit& visit,
                    GstAnalyticsMtd* added) {
    return add(meta, visit_impl, VisitHeader{visit, 0}, "", added);
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

std::optional<Zone> get_zone(const GstAnalyticsMtd& mtd) {
    auto* header = find<ZoneHeader>(mtd, zone_impl);
    if (!header) return std::nullopt;
    return Zone{header->name, header->line != 0, header->counts,
                behind<const vartml::ZonePoint>(header)};
}

std::optional<ZoneVisit> get_zone_visit(const GstAnalyticsMtd& mtd) {
    auto* header = find<VisitHeader>(mtd, visit_impl);
    if (!header) return std::nullopt;
    return header->visit;
}

}  // namespace vartml::gst

// The same for applications in C and in languages that bind it.
namespace {

// Writes where the caller wants it.
template <typename T>
void give(T* where, T value) {
    if (where) *where = value;
}

}  // namespace

GstAnalyticsMtdType gst_vartml_keypoints_mtd_get_mtd_type() {
    return vartml::gst::keypoints_mtd_type();
}

const gchar* gst_vartml_keypoints_mtd_get_skeleton(const GstAnalyticsMtd* mtd) {
    g_return_val_if_fail(mtd, nullptr);
    const auto keypoints = vartml::gst::get_keypoints(*mtd);
    return keypoints ? g_quark_to_string(keypoints->skeleton) : nullptr;
}

gsize gst_vartml_keypoints_mtd_get_length(const GstAnalyticsMtd* mtd) {
    g_return_val_if_fail(mtd, 0);
    const auto keypoints = vartml::gst::get_keypoints(*mtd);
    return keypoints ? keypoints->points.size() : 0;
}

gboolean gst_vartml_keypoints_mtd_get_point(const GstAnalyticsMtd* mtd, gsize index, gfloat* x,
                                            gfloat* y, gfloat* score, gboolean* visible) {
    g_return_val_if_fail(mtd, FALSE);
    const auto keypoints = vartml::gst::get_keypoints(*mtd);
    if (!keypoints || index >= keypoints->points.size()) return FALSE;
    const vartml::Keypoint& point = keypoints->points[index];
    give(x, point.x), give(y, point.y), give(score, point.score);
    give(visible, gboolean(point.visible));
    return TRUE;
}

GstAnalyticsMtdType gst_vartml_embedding_mtd_get_mtd_type() {
    return vartml::gst::embedding_mtd_type();
}

const gfloat* gst_vartml_embedding_mtd_get_vector(const GstAnalyticsMtd* mtd, gsize* length) {
    give<gsize>(length, 0);
    g_return_val_if_fail(mtd, nullptr);
    const auto vector = vartml::gst::get_embedding(*mtd);
    give(length, vector.size());
    return vector.data();
}

GstAnalyticsMtdType gst_vartml_text_mtd_get_mtd_type() {
    return vartml::gst::text_line_mtd_type();
}

gchar* gst_vartml_text_mtd_get_text(const GstAnalyticsMtd* mtd, gfloat* score) {
    g_return_val_if_fail(mtd, nullptr);
    const auto line = vartml::gst::get_text_line(*mtd);
    if (!line) return nullptr;
    give(score, line->score);
    return g_strndup(line->text.data(), line->text.size());
}

GstAnalyticsMtdType gst_vartml_zone_mtd_get_mtd_type() {
    return vartml::gst::zone_mtd_type();
}

gboolean gst_vartml_zone_mtd_get_info(const GstAnalyticsMtd* mtd, const gchar** name,
                                      gboolean* line, guint64* inside, guint64* in, guint64* out,
                                      GstClockTime* longest) {
    g_return_val_if_fail(mtd, FALSE);
    const auto zone = vartml::gst::get_zone(*mtd);
    if (!zone) return FALSE;
    give(name, g_quark_to_string(zone->name)), give(line, gboolean(zone->line));
    give(inside, guint64(zone->counts.inside)), give(in, guint64(zone->counts.in));
    give(out, guint64(zone->counts.out)), give(longest, GstClockTime(zone->counts.longest_ns));
    return TRUE;
}

gsize gst_vartml_zone_mtd_get_length(const GstAnalyticsMtd* mtd) {
    g_return_val_if_fail(mtd, 0);
    const auto zone = vartml::gst::get_zone(*mtd);
    return zone ? zone->points.size() : 0;
}

gboolean gst_vartml_zone_mtd_get_point(const GstAnalyticsMtd* mtd, gsize index, gfloat* x,
                                       gfloat* y) {
    g_return_val_if_fail(mtd, FALSE);
    const auto zone = vartml::gst::get_zone(*mtd);
    if (!zone || index >= zone->points.size()) return FALSE;
    give(x, zone->points[index].x), give(y, zone->points[index].y);
    return TRUE;
}

GstAnalyticsMtdType gst_vartml_zone_visit_mtd_get_mtd_type() {
    return vartml::gst::zone_visit_mtd_type();
}

gboolean gst_vartml_zone_visit_mtd_get_info(const GstAnalyticsMtd* mtd, const gchar** zone,
                                            const gchar** event, const gchar** label,
                                            guint64* track, GstClockTime* dwell) {
    g_return_val_if_fail(mtd, FALSE);
    const auto visit = vartml::gst::get_zone_visit(*mtd);
    if (!visit) return FALSE;
    give(zone, g_quark_to_string(visit->zone)), give(event, vartml::to_string(visit->kind).data());
    give(label, g_quark_to_string(visit->label));
    give(track, visit->track), give(dwell, GstClockTime(visit->dwell_ns));
    return TRUE;
}
