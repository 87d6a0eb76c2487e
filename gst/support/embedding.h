// SPDX-License-Identifier: Apache-2.0
// The Mtd type `vartml-embedding` inside GstAnalyticsRelationMeta: a vector of length 1 that says
// what a picture or a region looks like.
#pragma once
#include <gst/analytics/analytics.h>
#include <gst/gst.h>

#include <span>

namespace vartml::gst {

// Registers the type; safe to call often and from any thread.
GstAnalyticsMtdType embedding_mtd_type();

// Copies the vector into the meta. Returns false when it cannot grow.
bool add_embedding(GstAnalyticsRelationMeta* meta, std::span<const float> vector,
                   GstAnalyticsMtd* added);

// The vector of an Mtd of this type, valid until something is added to the meta; empty for another
// type. The handle may come from either of our plugins.
std::span<const float> get_embedding(const GstAnalyticsMtd& mtd);

}  // namespace vartml::gst
