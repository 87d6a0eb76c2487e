// SPDX-License-Identifier: Apache-2.0
// Our Mtd types inside GstAnalyticsRelationMeta besides the record of an inference: keypoints,
// embeddings, lines of text, zones and what happens in them. What they hold lies in the meta and is
// valid until something is added to it. A handle of another type gives nothing.
#pragma once
#include <gst/analytics/analytics.h>
#include <gst/gst.h>

#include <optional>
#include <span>
#include <string_view>

#include <vartml/postprocess.h>
#include <vartml/zones.h>

namespace vartml::gst {

// Joints or landmarks, in pixels of the frame that the current caps describe. Scaling a buffer
// scales them.
struct Keypoints {
    GQuark skeleton = 0;  // "coco17" or pairs "0-1;1-2;…" of point numbers; 0 = not known
    std::span<const vartml::Keypoint> points;
};

// A line that was read in a picture or a region. A text is no class, and a quark of each would
// never be freed.
struct TextLine {
    std::string_view text;  // UTF-8
    float score;            // 0 to 1
};

// A zone or a line of the picture with its counts so far. Points are in pixels as keypoints are.
struct Zone {
    GQuark name = 0;
    bool line = false;
    vartml::ZoneCounts counts;
    std::span<const vartml::ZonePoint> points;
};

// What a tracked object does in a zone on this frame. Its detection, where the frame has it,
// relates to it.
struct ZoneVisit {
    GQuark zone = 0, label = 0;  // label of the object; 0 = not known
    vartml::ZoneEventKind kind = vartml::ZoneEventKind::inside;
    guint64 track = 0, dwell_ns = 0;
};

GstAnalyticsMtdType keypoints_mtd_type();
GstAnalyticsMtdType embedding_mtd_type();
GstAnalyticsMtdType text_line_mtd_type();
GstAnalyticsMtdType zone_mtd_type();
GstAnalyticsMtdType zone_visit_mtd_type();

// The track that a detection belongs to, as our elements relate it or Intel's contain it; nothing
// where it has none.
std::optional<guint64> track_of(GstAnalyticsRelationMeta* meta, guint od);

// Each copies into the meta, and returns false when that cannot grow. An embedding is a vector of
// length 1 that says what a picture or a region looks like.
bool add_keypoints(GstAnalyticsRelationMeta* meta, const Keypoints& keypoints,
                   GstAnalyticsMtd* added);
bool add_embedding(GstAnalyticsRelationMeta* meta, std::span<const float> vector,
                   GstAnalyticsMtd* added);
bool add_text_line(GstAnalyticsRelationMeta* meta, const TextLine& line, GstAnalyticsMtd* added);
bool add_zone(GstAnalyticsRelationMeta* meta, const Zone& zone, GstAnalyticsMtd* added);
bool add_zone_visit(GstAnalyticsRelationMeta* meta, const ZoneVisit& visit, GstAnalyticsMtd* added);

std::optional<Keypoints> get_keypoints(const GstAnalyticsMtd& mtd);
std::span<const float> get_embedding(const GstAnalyticsMtd& mtd);
std::optional<TextLine> get_text_line(const GstAnalyticsMtd& mtd);
std::optional<Zone> get_zone(const GstAnalyticsMtd& mtd);
std::optional<ZoneVisit> get_zone_visit(const GstAnalyticsMtd& mtd);

}  // namespace vartml::gst
