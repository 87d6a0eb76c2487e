// SPDX-License-Identifier: Apache-2.0
#include "gst/publish/snapshot.h"

#include <algorithm>

#include "gst/publish/properties.h"
#include "gst/publish/runs.h"
#include "gst/support/embedding.h"
#include "gst/support/keypoints.h"
#include "gst/support/text_line.h"

namespace vartml::gst {
namespace {

// Labels are quarks, whose texts are never freed.
std::string_view text_of(GQuark quark) {
    const gchar* text = g_quark_to_string(quark);
    return text ? text : "";
}

void copy_inference(const Inference& from, vartml::RecordInference& to) {
    to.status = status_nick(from.status);
    to.result_seq.reset();
    if (from.status == InferenceStatus::carried) to.result_seq = from.result_seq;
    to.age_us = from.age_ns / 1000;
    to.region = {from.region_x, from.region_y, from.region_width, from.region_height};
    to.pre_us = from.pre_us, to.wait_us = from.wait_us;
    to.run_us = from.run_us, to.total_us = from.total_us;
    to.batch_fill = from.batch_fill;
    to.infer = from.record ? from.record->infer_id : std::string();
    to.model = from.record ? from.record->model : std::string();
    to.hash = from.record ? from.record->model_hash : std::string();
    to.epoch = from.record ? from.record->model_epoch : 0;
}

// Where the last elements of a list begin and how many they are.
template <typename T>
vartml::RecordRange range_from(const std::vector<T>& list, size_t first) {
    return {static_cast<uint32_t>(first), static_cast<uint32_t>(list.size() - first)};
}

vartml::RecordRange add_points(const Keypoints& keypoints, vartml::FrameRecord& record) {
    const size_t first = record.points.size();
    for (const vartml::Keypoint& point : keypoints.points)
        record.points.push_back({point.x, point.y, point.score});
    return range_from(record.points, first);
}

vartml::RecordRange add_numbers(std::span<const float> numbers, vartml::FrameRecord& record) {
    const size_t first = record.numbers.size();
    record.numbers.insert(record.numbers.end(), numbers.begin(), numbers.end());
    return range_from(record.numbers, first);
}

vartml::RecordText add_text(const TextLine& line, vartml::FrameRecord& record) {
    const size_t first = record.chars.size();
    record.chars += line.text;
    return {{static_cast<uint32_t>(first), static_cast<uint32_t>(line.text.size())}, line.score};
}

void add_classes(const GstAnalyticsMtd& cls, std::string_view model,
                 std::vector<vartml::RecordClass>& list) {
    const gsize count = gst_analytics_cls_mtd_get_length(&cls);
    for (gsize i = 0; i < count; ++i) {
        list.push_back({text_of(gst_analytics_cls_mtd_get_quark(&cls, i)),
                        gst_analytics_cls_mtd_get_level(&cls, i), model});
    }
}

// The class of the detection itself, which its label says already.
bool is_own_class(const GstAnalyticsMtd& cls, GQuark label) {
    return gst_analytics_cls_mtd_get_length(&cls) == 1 &&
           gst_analytics_cls_mtd_get_quark(&cls, 0) == label;
}

}  // namespace

// Our elements relate, Intel's contain.
template <typename Function>
void SnapshotReader::for_related(guint id, Function&& function) {
    for (const auto relation : {GST_ANALYTICS_REL_TYPE_RELATE_TO, GST_ANALYTICS_REL_TYPE_CONTAIN}) {
        gpointer state = nullptr;
        GstAnalyticsMtd related;
        while (gst_analytics_relation_meta_get_direct_related(
            meta_, id, relation, GST_ANALYTICS_MTD_TYPE_ANY, &state, &related)) {
            function(related);
        }
    }
}

template <typename Function>
void SnapshotReader::for_all(GstAnalyticsMtdType type, Function&& function) {
    gpointer state = nullptr;
    GstAnalyticsMtd mtd;
    while (gst_analytics_relation_meta_iterate(meta_, &state, type, &mtd)) function(mtd);
}

void SnapshotReader::read(GstBuffer* buffer, unsigned include, vartml::FrameRecord& record) {
    meta_ = gst_buffer_get_analytics_relation_meta(buffer);
    record_ = &record;
    include_ = include;
    record.timings = include & include_timings;
    if (!meta_) return;
    read_inferences(buffer);
    owned_.assign(gst_analytics_relation_get_length(meta_), false);
    for_all(gst_analytics_od_mtd_get_mtd_type(),
            [this](const GstAnalyticsMtd& od) { read_object(od); });
    read_picture_details();
    if (!(include & include_objects)) record.objects.clear();
}

void SnapshotReader::read_inferences(GstBuffer* buffer) {
    sources_.clear();
    GstAnalyticsMtd mtd;
    for (unsigned i = 0; const Inference* inference = get_inference(buffer, i, &mtd); ++i) {
        sources_.push_back({mtd.id, inference});
        if (record_->inferences.size() == i) record_->inferences.emplace_back();
        copy_inference(*inference, record_->inferences[i]);
        record_->num_inferences = i + 1;
    }
    if (sources_.empty()) return;
    record_->stream = sources_[0].inference->stream_id;
    record_->frame_seq = sources_[0].inference->frame_seq;
}

// Name of the model that a result is related to.
std::string_view SnapshotReader::model_of(guint id) const {
    for (const Source& source : sources_) {
        if (source.inference->record && gst_analytics_relation_meta_get_relation(
                                            meta_, id, source.id) != GST_ANALYTICS_REL_TYPE_NONE) {
            return g_intern_string(source.inference->record->model.c_str());
        }
    }
    return {};
}

void SnapshotReader::read_object(const GstAnalyticsMtd& od) {
    int x, y, w, h;
    float angle = 0, score = 0;
    if (!gst_analytics_od_mtd_get_oriented_location(&od, &x, &y, &w, &h, &angle, &score)) return;
    vartml::RecordObject& object = record_->objects.emplace_back();
    const GQuark label = gst_analytics_od_mtd_get_obj_type(&od);
    object.id = od.id;
    object.label = text_of(label);
    object.model = model_of(od.id);
    object.score = score;
    object.box = {x, y, w, h};
    object.angle = angle;
    for (const Source& source : sources_) {
        if (gst_analytics_relation_meta_get_relation(meta_, od.id, source.id) ==
            GST_ANALYTICS_REL_TYPE_NONE) {
            continue;
        }
        object.class_id = numbers_.find(source.inference->record, label);
        break;
    }
    GstAnalyticsMtd parent;
    if (gst_analytics_relation_meta_get_direct_related(
            meta_, od.id, GST_ANALYTICS_REL_TYPE_IS_PART_OF, gst_analytics_od_mtd_get_mtd_type(),
            nullptr, &parent)) {
        object.parent = parent.id;
    }
    read_details(od, object);
}

void SnapshotReader::read_details(const GstAnalyticsMtd& od, vartml::RecordObject& object) {
    const GQuark label = gst_analytics_od_mtd_get_obj_type(&od);
    const size_t first = record_->labels.size();
    bool own_class_seen = false;
    for_related(od.id, [&](const GstAnalyticsMtd& related) {
        if (related.id < owned_.size()) owned_[related.id] = true;
        if (gst_analytics_mtd_get_mtd_type(&related) != gst_analytics_cls_mtd_get_mtd_type())
            return read_related(related, object);
        if (!own_class_seen && is_own_class(related, label)) {
            own_class_seen = true;
        } else if (include_ & include_classes) {
            add_classes(related, model_of(related.id), record_->labels);
        }
    });
    object.attributes = range_from(record_->labels, first);
}

void SnapshotReader::read_related(const GstAnalyticsMtd& related, vartml::RecordObject& object) {
    const GstAnalyticsMtdType type = gst_analytics_mtd_get_mtd_type(&related);
    if (type == gst_analytics_tracking_mtd_get_mtd_type()) {
        guint64 id;
        GstClockTime first_seen, last_seen;
        gboolean lost;
        if ((include_ & include_tracks) &&
            gst_analytics_tracking_mtd_get_info(&related, &id, &first_seen, &last_seen, &lost)) {
            object.track = id;
        }
    } else if (type == gst_analytics_segmentation_mtd_get_mtd_type()) {
        if ((include_ & include_masks) && !object.mask) object.mask = read_mask(related, false);
    } else if (const auto keypoints = get_keypoints(related)) {
        if ((include_ & include_keypoints) && !object.keypoints.count)
            object.keypoints = add_points(*keypoints, *record_);
    } else if (const auto embedding = get_embedding(related); !embedding.empty()) {
        if ((include_ & include_embeddings) && !object.embedding.count)
            object.embedding = add_numbers(embedding, *record_);
    } else if (const auto line = get_text_line(related)) {
        if ((include_ & include_texts) && !object.text) object.text = add_text(*line, *record_);
    }
}

std::optional<vartml::RecordMask> SnapshotReader::read_mask(const GstAnalyticsMtd& mtd,
                                                            bool regions) {
    int x, y;
    guint w, h;
    GstBuffer* picture = gst_analytics_segmentation_mtd_get_mask(&mtd, &x, &y, &w, &h);
    if (!picture) return std::nullopt;
    auto mask = add_runs(picture, regions, *record_);
    gst_buffer_unref(picture);
    if (mask) mask->box = {x, y, static_cast<int>(w), static_cast<int>(h)};
    return mask;
}

// A mask of the whole picture; the labels of its regions are in the order of the regions.
void SnapshotReader::read_map(const GstAnalyticsMtd& segmentation) {
    const size_t first_label = record_->labels.size();
    for_related(segmentation.id, [&](const GstAnalyticsMtd& related) {
        if (gst_analytics_mtd_get_mtd_type(&related) != gst_analytics_cls_mtd_get_mtd_type())
            return;
        owned_[related.id] = true;
        if (record_->labels.size() == first_label) add_classes(related, {}, record_->labels);
    });
    if (!(include_ & include_masks) || owned_[segmentation.id]) return;
    auto mask = read_mask(segmentation, true);
    if (!mask) return;
    mask->labels = range_from(record_->labels, first_label);
    const size_t first = record_->runs.size();
    const gsize count = gst_analytics_segmentation_mtd_get_region_count(&segmentation);
    for (gsize i = 0; i < count; ++i)
        record_->runs.push_back(gst_analytics_segmentation_mtd_get_region_id(&segmentation, i));
    mask->regions = range_from(record_->runs, first);
    record_->masks.push_back(*mask);
}

// What belongs to no object.
void SnapshotReader::read_picture_details() {
    for_all(gst_analytics_segmentation_mtd_get_mtd_type(),
            [this](const GstAnalyticsMtd& mtd) { read_map(mtd); });
    for_all(GST_ANALYTICS_MTD_TYPE_ANY, [this](const GstAnalyticsMtd& mtd) {
        if (owned_[mtd.id]) return;
        if (gst_analytics_mtd_get_mtd_type(&mtd) == gst_analytics_cls_mtd_get_mtd_type()) {
            if (include_ & include_classes) add_classes(mtd, model_of(mtd.id), record_->classes);
        } else if (const auto keypoints = get_keypoints(mtd)) {
            if (include_ & include_keypoints)
                record_->keypoints.push_back(add_points(*keypoints, *record_));
        } else if (const auto embedding = get_embedding(mtd); !embedding.empty()) {
            if (include_ & include_embeddings)
                record_->embeddings.push_back(add_numbers(embedding, *record_));
        } else if (const auto line = get_text_line(mtd)) {
            if (include_ & include_texts) record_->texts.push_back(add_text(*line, *record_));
        }
    });
}

}  // namespace vartml::gst
