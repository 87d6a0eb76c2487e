// SPDX-License-Identifier: Apache-2.0
// Masks as upstream's segmentation metadata.
#pragma once
#include <gst/analytics/analytics.h>

#include <span>
#include <vector>

#include <vartml/postprocess.h>

namespace vartml::gst {

// The values of a class map's pixels but the one of all bits (none), ascending.
std::vector<guint> regions_in(const vartml::Mask& map, const uint8_t* pixels);

// Adds a GRAY8 picture, GRAY16_LE for pixels of two bytes, with a copy of the pixels, over the
// rectangle of the frame that the mask covers, corners rounded to nearest. Returns false when the
// meta cannot grow.
bool add_mask(GstAnalyticsRelationMeta* meta, const vartml::Mask& mask, const uint8_t* pixels,
              GstSegmentationType type, std::span<const guint> regions, GstAnalyticsMtd* added);

}  // namespace vartml::gst
