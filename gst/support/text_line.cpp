// SPDX-License-Identifier: Apache-2.0
#include "gst/support/text_line.h"

#include <algorithm>
#include <cstring>

namespace vartml::gst {
namespace {

constexpr char mtd_name[] = "vartml-text";

// Begins the bytes in the meta, which are moved and copied as they are; the text follows.
struct Header {
    gfloat score;
    guint bytes;
};

// The bytes were copied already, and no change of the picture changes what was read.
gboolean mtd_transform(GstBuffer*, GstAnalyticsMtd*, GstBuffer*, GQuark, gpointer) {
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

}  // namespace

GstAnalyticsMtdType text_line_mtd_type() {
    return reinterpret_cast<GstAnalyticsMtdType>(mtd_impl());
}

bool add_text_line(GstAnalyticsRelationMeta* meta, const TextLine& line, GstAnalyticsMtd* added) {
    auto* header = static_cast<Header*>(gst_analytics_relation_meta_add_mtd(
        meta, mtd_impl(), sizeof(Header) + line.text.size(), added));
    if (!header) return false;
    *header = {line.score, static_cast<guint>(line.text.size())};
    std::ranges::copy(line.text, reinterpret_cast<char*>(header + 1));
    return true;
}

std::optional<TextLine> get_text_line(const GstAnalyticsMtd& mtd) {
    // Both plugin objects carry this file, so the type is known by its name, not by its address.
    const GstAnalyticsMtdType type = gst_analytics_mtd_get_mtd_type(&mtd);
    if (type != text_line_mtd_type() &&
        std::strcmp(gst_analytics_mtd_type_get_name(type), mtd_name) != 0) {
        return std::nullopt;
    }
    const auto* header =
        static_cast<const Header*>(gst_analytics_relation_meta_get_mtd_data(mtd.meta, mtd.id));
    return TextLine{{reinterpret_cast<const char*>(header + 1), header->bytes}, header->score};
}

}  // namespace vartml::gst
