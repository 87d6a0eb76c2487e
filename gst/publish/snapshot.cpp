// SPDX-License-Identifier: Apache-2.0
#include "gst/publish/snapshot.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include <gst/gst.h>
#include <gst/video/video.h>

#include <vartml/publish.h>

#include "gst/metadata/mtd.h"
#include "gst/publish/open.h"

namespace vartml::gst {

// Masks as lengths of runs.

// Adds a mask picture (GRAY8 or GRAY16_LE with GstVideoMeta) to the record's runs: `regions` writes
// pairs of region and length, else pixels of 0 and others by turns. Nothing where the picture
// cannot be read.
std::optional<vartml::RecordMask> add_runs(GstBuffer* picture, bool regions,
                                           vartml::FrameRecord& record);

namespace {

// ours: models of a pipeline whose labels are kept; after swaps the oldest goes
constexpr size_t most_models = 8;

int32_t number_of(const InferenceRecord& model, const char* label) {
    const std::vector<std::string>& labels = model.model_info.labels;
    const auto it = std::ranges::find(labels, label);
    if (it != labels.end()) return static_cast<int32_t>(it - labels.begin());
    int32_t number = -1;
    const char* const end = label + std::strlen(label);
    const auto [rest, error] = std::from_chars(label, end, number);
    return labels.empty() && error == std::errc() && rest == end ? number : -1;
}

}  // namespace

std::optional<int32_t> LabelNumbers::find(const std::shared_ptr<const InferenceRecord>& model,
                                          GQuark label) {
    if (!model || !label) return std::nullopt;
    auto it = std::ranges::find(models_, model, &Model::record);
    if (it == models_.end()) {
        if (models_.size() == most_models) models_.erase(models_.begin());
        it = models_.insert(models_.end(), Model{model, {}});
    }
    const auto [entry, added] = it->numbers.try_emplace(label, -1);
    if (added) entry->second = number_of(*model, g_quark_to_string(label));
    return entry->second < 0 ? std::nullopt : std::optional(entry->second);
}

namespace {

struct Picture {
    const uint8_t* data;
    gsize stride;
    guint width, height;
    bool wide;  // 16 bits per pixel
    uint32_t at(guint x, guint y) const {
        const uint8_t* const p = data + y * stride + x * (wide ? 2u : 1u);
        return wide ? GST_READ_UINT16_LE(p) : *p;
    }
};

void write_regions(const Picture& picture, std::vector<uint32_t>& runs) {
    uint32_t value = picture.at(0, 0), length = 0;
    for (guint y = 0; y < picture.height; ++y) {
        for (guint x = 0; x < picture.width; ++x) {
            const uint32_t pixel = picture.at(x, y);
            if (pixel != value) {
                runs.insert(runs.end(), {value, length});
                value = pixel, length = 0;
            }
            ++length;
        }
    }
    runs.insert(runs.end(), {value, length});
}

void write_turns(const Picture& picture, std::vector<uint32_t>& runs) {
    bool inside = false;
    uint32_t length = 0;
    for (guint y = 0; y < picture.height; ++y) {
        for (guint x = 0; x < picture.width; ++x) {
            if ((picture.at(x, y) != 0) != inside) {
                runs.push_back(length);
                inside = !inside, length = 0;
            }
            ++length;
        }
    }
    runs.push_back(length);
}

}  // namespace

std::optional<vartml::RecordMask> add_runs(GstBuffer* buffer, bool regions,
                                           vartml::FrameRecord& record) {
    const GstVideoMeta* meta = gst_buffer_get_video_meta(buffer);
    if (!meta || meta->width == 0 || meta->height == 0) return std::nullopt;
    const bool wide = meta->format == GST_VIDEO_FORMAT_GRAY16_LE;
    if (!wide && meta->format != GST_VIDEO_FORMAT_GRAY8) return std::nullopt;
    GstMapInfo map;
    if (!gst_buffer_map(buffer, &map, GST_MAP_READ)) return std::nullopt;
    const gsize stride = static_cast<gsize>(std::max(meta->stride[0], 0));
    const gsize row = gsize(meta->width) * (wide ? 2 : 1);
    const bool fits =
        stride >= row && meta->offset[0] + (meta->height - 1) * stride + row <= map.size;
    std::optional<vartml::RecordMask> mask;
    if (fits) {
        const Picture picture{map.data + meta->offset[0], stride, meta->width, meta->height, wide};
        mask.emplace();
        mask->width = meta->width, mask->height = meta->height;
        mask->runs.first = static_cast<uint32_t>(record.runs.size());
        regions ? write_regions(picture, record.runs) : write_turns(picture, record.runs);
        mask->runs.count = static_cast<uint32_t>(record.runs.size()) - mask->runs.first;
    }
    gst_buffer_unmap(buffer, &map);
    return mask;
}

namespace {

// Labels are quarks, whose texts are never freed.
std::string_view text_of(GQuark quark) {
    const gchar* text = g_quark_to_string(quark);
    return text ? text : "";
}

// Of the frame that was inferred, in pixels of the record's, which may have been scaled since.
int scaled(int at, unsigned then, unsigned now) {
    return then == 0 || now == 0 ? at : static_cast<int>(int64_t{at} * now / then);
}

void copy_inference(const Inference& from, unsigned width, unsigned height,
                    vartml::RecordInference& to) {
    to.status = status_nick(from.status);
    to.result_seq.reset();
    if (from.status == InferenceStatus::carried) to.result_seq = from.result_seq;
    to.age_us = from.age_ns / 1000;
    to.region = {scaled(from.region_x, from.frame_width, width),
                 scaled(from.region_y, from.frame_height, height),
                 scaled(from.region_width, from.frame_width, width),
                 scaled(from.region_height, from.frame_height, height)};
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
        copy_inference(*inference, record_->width, record_->height, record_->inferences[i]);
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
    const size_t first = record_->labels.size(), first_visit = record_->visits.size();
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
    object.visits = range_from(record_->visits, first_visit);
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
        if ((include_ & include_masks) && !object.mask && !is_class_map(related))
            object.mask = read_mask(related, false);
    } else if (const auto keypoints = get_keypoints(related)) {
        if ((include_ & include_keypoints) && !object.keypoints.count)
            object.keypoints = add_points(*keypoints, *record_);
    } else if (const auto embedding = get_embedding(related); !embedding.empty()) {
        if ((include_ & include_embeddings) && !object.embedding.count)
            object.embedding = add_numbers(embedding, *record_);
    } else if (const auto line = get_text_line(related)) {
        if ((include_ & include_texts) && !object.text) object.text = add_text(*line, *record_);
    } else if (const auto visit = get_zone_visit(related)) {
        read_visit(*visit, true);
    }
}

// Who is in a zone is said of the object, what happened of the frame.
void SnapshotReader::read_visit(const ZoneVisit& visit, bool of_object) {
    using Kind = vartml::ZoneEventKind;
    if (!(include_ & include_zones)) return;
    const vartml::RecordVisit record = {text_of(visit.zone), to_string(visit.kind),
                                        text_of(visit.label), visit.track, visit.dwell_ns};
    if (visit.kind != Kind::inside) record_->happened.push_back(record);
    if (of_object && (visit.kind == Kind::inside || visit.kind == Kind::enter))
        record_->visits.push_back(record);
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

// What a model found of classes, in a region too, which says nothing of where the object is.
bool SnapshotReader::is_class_map(const GstAnalyticsMtd& segmentation) {
    bool has_classes = false;
    for_related(segmentation.id, [&](const GstAnalyticsMtd& related) {
        has_classes |=
            gst_analytics_mtd_get_mtd_type(&related) == gst_analytics_cls_mtd_get_mtd_type();
    });
    return has_classes;
}

// A mask of the whole picture or of a region; the labels of its regions are in the order of the
// regions.
void SnapshotReader::read_map(const GstAnalyticsMtd& segmentation) {
    const size_t first_label = record_->labels.size();
    for_related(segmentation.id, [&](const GstAnalyticsMtd& related) {
        if (gst_analytics_mtd_get_mtd_type(&related) != gst_analytics_cls_mtd_get_mtd_type())
            return;
        owned_[related.id] = true;
        if (record_->labels.size() == first_label) add_classes(related, {}, record_->labels);
    });
    const bool is_of_object = owned_[segmentation.id] && record_->labels.size() == first_label;
    if (!(include_ & include_masks) || is_of_object) return;
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
        } else if (const auto zone = get_zone(mtd)) {
            if (include_ & include_zones)
                record_->zones.push_back({text_of(zone->name), zone->line, zone->counts.inside,
                                          zone->counts.in, zone->counts.out,
                                          zone->counts.longest_ns});
        } else if (const auto visit = get_zone_visit(mtd)) {
            read_visit(*visit, false);
        }
    });
}

}  // namespace vartml::gst
