// SPDX-License-Identifier: Apache-2.0
#include "gst/support/embedding.h"

#include <algorithm>
#include <cstring>

namespace vartml::gst {
namespace {

constexpr char mtd_name[] = "vartml-embedding";

// Begins the bytes in the meta, which are moved and copied as they are; the numbers follow.
struct Header {
    guint count;
};

std::span<float> numbers_of(Header* header) {
    return {reinterpret_cast<float*>(header + 1), header->count};
}

// The bytes were copied already, and no change of the picture changes what it looked like.
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

GstAnalyticsMtdType embedding_mtd_type() {
    return reinterpret_cast<GstAnalyticsMtdType>(mtd_impl());
}

bool add_embedding(GstAnalyticsRelationMeta* meta, std::span<const float> vector,
                   GstAnalyticsMtd* added) {
    auto* header = static_cast<Header*>(gst_analytics_relation_meta_add_mtd(
        meta, mtd_impl(), sizeof(Header) + vector.size_bytes(), added));
    if (!header) return false;
    header->count = static_cast<guint>(vector.size());
    std::ranges::copy(vector, numbers_of(header).begin());
    return true;
}

std::span<const float> get_embedding(const GstAnalyticsMtd& mtd) {
    // Both plugin objects carry this file, so the type is known by its name, not by its address.
    const GstAnalyticsMtdType type = gst_analytics_mtd_get_mtd_type(&mtd);
    if (type != embedding_mtd_type() &&
        std::strcmp(gst_analytics_mtd_type_get_name(type), mtd_name) != 0) {
        return {};
    }
    return numbers_of(
        static_cast<Header*>(gst_analytics_relation_meta_get_mtd_data(mtd.meta, mtd.id)));
}

}  // namespace vartml::gst
