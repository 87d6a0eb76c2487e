// SPDX-License-Identifier: Apache-2.0
// The Mtd type `vartml-text` inside GstAnalyticsRelationMeta: a line of text that was read in a
// picture or a region, with its score. Its bytes lie in the meta: a text is no class, and a quark
// of each would never be freed.
#pragma once
#include <gst/analytics/analytics.h>
#include <gst/gst.h>

#include <optional>
#include <string_view>

namespace vartml::gst {

struct TextLine {
    std::string_view text;  // UTF-8
    float score;            // 0 to 1
};

// Registers the type; safe to call often and from any thread.
GstAnalyticsMtdType text_line_mtd_type();

// Copies the text into the meta. Returns false when it cannot grow.
bool add_text_line(GstAnalyticsRelationMeta* meta, const TextLine& line, GstAnalyticsMtd* added);

// The line of an Mtd of this type, valid until something is added to the meta; nullopt for another
// type. The handle may come from either of our plugins.
std::optional<TextLine> get_text_line(const GstAnalyticsMtd& mtd);

}  // namespace vartml::gst
