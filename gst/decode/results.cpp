// SPDX-License-Identifier: Apache-2.0
#include "gst/decode/results.h"

#include <cmath>

namespace vartml::gst {
namespace {

// ours: classes beyond this many are looked up each time
constexpr int32_t most_quarks = 1 << 20;

void relate(GstAnalyticsRelationMeta* meta, guint from, guint to) {
    gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, from, to);
}

bool add_box(GstAnalyticsRelationMeta* meta, const vartml::Detection& d, GQuark label,
             const ResultContext& context) {
    const int x0 = static_cast<int>(std::lround(d.x0)), y0 = static_cast<int>(std::lround(d.y0));
    const int x1 = static_cast<int>(std::lround(d.x1)), y1 = static_cast<int>(std::lround(d.y1));
    GstAnalyticsODMtd od;
    GstAnalyticsClsMtd cls;
    if (x1 <= x0 || y1 <= y0 ||
        !gst_analytics_relation_meta_add_od_mtd(meta, label, x0, y0, x1 - x0, y1 - y0, d.score,
                                                &od)) {
        return false;
    }
    if (gst_analytics_relation_meta_add_one_cls_mtd(meta, d.score, label, &cls)) {
        relate(meta, od.id, cls.id);
    }
    if (context.has_inference) relate(meta, od.id, context.inference_id);
    if (context.region_od >= 0) {
        gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_IS_PART_OF, od.id,
                                                 static_cast<guint>(context.region_od));
    }
    return true;
}

void add_classes(GstAnalyticsRelationMeta* meta, const std::vector<vartml::Classification>& classes,
                 LabelQuarks& quarks, const ResultContext& context) {
    std::vector<gfloat> scores;
    std::vector<GQuark> labels;
    for (const vartml::Classification& c : classes) {
        scores.push_back(c.score);
        labels.push_back(quarks[c.class_id]);
    }
    GstAnalyticsClsMtd cls;
    if (!gst_analytics_relation_meta_add_cls_mtd(meta, scores.size(), scores.data(), labels.data(),
                                                 &cls)) {
        return;
    }
    if (context.has_inference) relate(meta, cls.id, context.inference_id);
    if (context.region_od >= 0) relate(meta, static_cast<guint>(context.region_od), cls.id);
}

}  // namespace

GQuark LabelQuarks::operator[](int32_t class_id) {
    if (class_id < 0 || class_id >= most_quarks) {
        return g_quark_from_string(decoder_->label(class_id).c_str());
    }
    const auto index = static_cast<size_t>(class_id);
    if (index >= quarks_.size()) quarks_.resize(index + 1, 0);
    if (!quarks_[index]) quarks_[index] = g_quark_from_string(decoder_->label(class_id).c_str());
    return quarks_[index];
}

unsigned add_results(GstBuffer* buffer, const vartml::Decoded& decoded, LabelQuarks& quarks,
                     const ResultContext& context) {
    if (decoded.detections.empty() && decoded.classes.empty()) return 0;
    GstAnalyticsRelationMetaInitParams params = {128, 16384};
    GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta_full(buffer, &params);
    if (!meta) return 0;
    unsigned boxes = 0;
    for (const vartml::Detection& detection : decoded.detections) {
        boxes += add_box(meta, detection, quarks[detection.class_id], context);
    }
    if (!decoded.classes.empty()) add_classes(meta, decoded.classes, quarks, context);
    return boxes;
}

}  // namespace vartml::gst
