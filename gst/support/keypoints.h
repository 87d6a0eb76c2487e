// SPDX-License-Identifier: Apache-2.0
// The Mtd type `vartml-keypoints` inside GstAnalyticsRelationMeta: joints or landmarks, in pixels
// of the frame that the current caps describe. Scaling a buffer scales them.
#pragma once
#include <gst/analytics/analytics.h>
#include <gst/gst.h>

#include <optional>
#include <span>

#include <vartml/postprocess.h>

namespace vartml::gst {

// What lies in the meta; valid until something is added to it.
struct Keypoints {
    GQuark skeleton = 0;  // "coco17" or pairs "0-1;1-2;…" of point numbers; 0 = not known
    std::span<const vartml::Keypoint> points;
};

// Registers the type; safe to call often and from any thread.
GstAnalyticsMtdType keypoints_mtd_type();

// Copies the points into the meta. Returns false when it cannot grow.
bool add_keypoints(GstAnalyticsRelationMeta* meta, const Keypoints& keypoints,
                   GstAnalyticsMtd* added);

// The points of an Mtd of this type; empty for another type. The handle may come from either of our
// plugins.
std::optional<Keypoints> get_keypoints(const GstAnalyticsMtd& mtd);

}  // namespace vartml::gst
