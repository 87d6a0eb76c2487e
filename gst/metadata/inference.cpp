// SPDX-License-Identifier: Apache-2.0
#include "gst/metadata/inference.h"

#include <mutex>

#include <gst/vartml/inference.h>
#include <gst/vartml/mtd.h>
#include <gst/video/gstvideometa.h>

#include "gst/metadata/frame_matrix.h"

namespace vartml::gst {
namespace {

// What lies in the relation meta: its bytes are moved by realloc and copied by memcpy, so it is one
// pointer to an object of ours. The object belongs to exactly one Mtd.
struct Payload {
    Inference* inference;
};

// Objects without an owner, kept with the memory of their strings and vectors: frames come and go,
// allocations do not.
struct Spare {
    std::mutex mutex;  // guards the two below; nothing is taken while it is held
    Inference* objects[64] = {};
    unsigned count = 0;
};
constinit Spare spare;

Inference* take_spare() {
    const std::lock_guard lock(spare.mutex);
    return spare.count ? spare.objects[--spare.count] : nullptr;
}

void release(Inference* inference) {
    for (GstBuffer* data : inference->data) gst_buffer_unref(data);
    inference->data.clear();
    inference->record.reset();
    {
        const std::lock_guard lock(spare.mutex);
        if (spare.count < std::size(spare.objects)) {
            spare.objects[spare.count++] = inference;
            return;
        }
    }
    delete inference;
}

Inference* duplicate(const Inference& from) {
    Inference* copy = take_spare();
    if (!copy) copy = new Inference;
    *copy = from;
    for (GstBuffer* data : copy->data) gst_buffer_ref(data);
    return copy;
}

Payload* payload_of(const GstAnalyticsMtd& mtd) {
    return static_cast<Payload*>(gst_analytics_relation_meta_get_mtd_data(mtd.meta, mtd.id));
}

// Width by height as a display shows it; 0 where there is none.
double display_aspect(const GstVideoInfo& info) {
    if (GST_VIDEO_INFO_HEIGHT(&info) <= 0 || GST_VIDEO_INFO_PAR_D(&info) <= 0) return 0;
    return double(GST_VIDEO_INFO_WIDTH(&info)) * GST_VIDEO_INFO_PAR_N(&info) /
           (double(GST_VIDEO_INFO_HEIGHT(&info)) * GST_VIDEO_INFO_PAR_D(&info));
}

// Whether an element that keeps the display aspect adds no border, or one of less than a pixel: a
// side that follows from the other is rounded.
bool keeps_aspect(const GstVideoInfo& in, const GstVideoInfo& out) {
    const double before = display_aspect(in), after = display_aspect(out);
    if (before <= 0 || after <= 0) return false;
    const double border = 1 - std::min(before, after) / std::max(before, after);
    const int side = after < before ? GST_VIDEO_INFO_HEIGHT(&out) : GST_VIDEO_INFO_WIDTH(&out);
    return border * side < 1;
}

// Equal sizes count as a copy (videoconvert calls it a scale); equal display aspects scale the map;
// anything else may have added borders, which the transform does not tell.
void scale_geometry(Inference& inference, const GstVideoInfo& in, const GstVideoInfo& out) {
    const int iw = GST_VIDEO_INFO_WIDTH(&in), ih = GST_VIDEO_INFO_HEIGHT(&in);
    const int ow = GST_VIDEO_INFO_WIDTH(&out), oh = GST_VIDEO_INFO_HEIGHT(&out);
    if (iw == ow && ih == oh) return;
    if (!keeps_aspect(in, out)) {
        inference.geometry_valid = false;
        return;
    }
    const double sx = double(ow) / iw, sy = double(oh) / ih;
    vartml::Affine& map = inference.to_frame;
    map.a *= sx, map.b *= sx, map.c *= sx;
    map.d *= sy, map.e *= sy, map.f *= sy;
}

// Tiles are known by their places in a whole frame.
void follow_matrix(Inference& inference, const void* data) {
    const auto after = read_frame_matrix(data);
    if (!after || (inference.tiles && !keeps_whole_frame(data))) {
        inference.geometry_valid = false;
        return;
    }
    vartml::Affine& map = inference.to_frame;
    map.a *= after->a, map.b *= after->a, map.c = map.c * after->a + after->c;
    map.d *= after->e, map.e *= after->e, map.f = map.f * after->e + after->f;
}

// 1.26.2 has copied the bytes already and ignores the return value: whatever the type, the new Mtd
// gets an object of its own.
gboolean mtd_transform(GstBuffer*, GstAnalyticsMtd* mtd, GstBuffer*, GQuark type, gpointer data) {
    Payload* payload = payload_of(*mtd);
    payload->inference = duplicate(*payload->inference);
    if (GST_META_TRANSFORM_IS_COPY(type)) return TRUE;
    if (GST_VIDEO_META_TRANSFORM_IS_SCALE(type)) {
        const auto* scale = static_cast<const GstVideoMetaTransform*>(data);
        scale_geometry(*payload->inference, *scale->in_info, *scale->out_info);
    } else if (is_frame_matrix(type)) {
        follow_matrix(*payload->inference, data);
    } else {
        payload->inference->geometry_valid = false;
    }
    return TRUE;
}

void mtd_clear(GstBuffer*, GstAnalyticsMtd* mtd) {
    Payload* payload = payload_of(*mtd);
    release(payload->inference);
    payload->inference = nullptr;
}

GstAnalyticsMtdImpl make_impl() {
    GstAnalyticsMtdImpl impl{};
    impl.name = "vartml-inference";
    impl.mtd_meta_transform = mtd_transform;
    impl.mtd_meta_clear = mtd_clear;
    return impl;
}

const GstAnalyticsMtdImpl* mtd_impl() {
    static const GstAnalyticsMtdImpl impl = make_impl();
    return &impl;
}

bool is_inference(const GstAnalyticsMtd& mtd) {
    return gst_analytics_mtd_get_mtd_type(&mtd) == inference_mtd_type();
}

template <typename Function>
void for_each(GstBuffer* buffer, Function&& function) {
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    if (!meta) return;
    gpointer state = nullptr;
    GstAnalyticsMtd mtd;
    while (gst_analytics_relation_meta_iterate(meta, &state, GST_ANALYTICS_MTD_TYPE_ANY, &mtd)) {
        if (is_inference(mtd) && !function(mtd)) return;
    }
}

}  // namespace

const char* status_nick(InferenceStatus status) {
    constexpr const char* nicks[] = {"inferred",       "skipped-interval", "skipped-late",
                                     "skipped-busy",   "skipped-slo",      "skipped-flag",
                                     "skipped-region", "skipped-still",    "skipped-track",
                                     "failed",         "carried",          "pending"};
    static_assert(std::size(nicks) == num_statuses);
    return nicks[static_cast<int>(status)];
}

GstAnalyticsMtdType inference_mtd_type() {
    return reinterpret_cast<GstAnalyticsMtdType>(mtd_impl());
}

bool add_inference(GstBuffer* buffer, const Inference& inference, unsigned expected_boxes) {
    // A box takes an OD and a class; the square of the order is allocated, so it stays modest and
    // grows when needed.
    GstAnalyticsRelationMetaInitParams params = {8, 1024};
    if (expected_boxes) params = {128, 16384};
    GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta_full(buffer, &params);
    if (!meta) return false;
    GstAnalyticsMtd mtd;
    auto* payload = static_cast<Payload*>(
        gst_analytics_relation_meta_add_mtd(meta, mtd_impl(), sizeof(Payload), &mtd));
    if (!payload) return false;
    payload->inference = duplicate(inference);
    return true;
}

const Inference* get_inference(GstBuffer* buffer, unsigned index, GstAnalyticsMtd* found) {
    const Inference* result = nullptr;
    for_each(buffer, [&](const GstAnalyticsMtd& mtd) {
        if (index-- != 0) return true;
        result = payload_of(mtd)->inference;
        if (found) *found = mtd;
        return false;
    });
    return result;
}

void drop_inference_tensors(GstBuffer* buffer) {
    for_each(buffer, [](const GstAnalyticsMtd& mtd) {
        Inference* inference = payload_of(mtd)->inference;
        for (GstBuffer* data : inference->data) gst_buffer_unref(data);
        inference->data.clear();
        return true;
    });
}

void mark_decoded(GstBuffer* buffer) {
    for_each(buffer, [](const GstAnalyticsMtd& mtd) {
        payload_of(mtd)->inference->decoded = true;
        return true;
    });
}

// The record of an inference as a GstStructure, for applications in C and in languages that bind
// GStreamer.
namespace {

// Appends to an array-valued field; GstValueArray is what every binding can read.
class Array {
public:
    Array() { g_value_init(&array_, GST_TYPE_ARRAY); }
    void add(double number) {
        GValue v = G_VALUE_INIT;
        g_value_init(&v, G_TYPE_DOUBLE);
        g_value_set_double(&v, number);
        gst_value_array_append_and_take_value(&array_, &v);
    }
    void add(unsigned number) {
        GValue v = G_VALUE_INIT;
        g_value_init(&v, G_TYPE_UINT);
        g_value_set_uint(&v, number);
        gst_value_array_append_and_take_value(&array_, &v);
    }
    void add(const std::string& text) {
        GValue v = G_VALUE_INIT;
        g_value_init(&v, G_TYPE_STRING);
        g_value_set_string(&v, text.c_str());
        gst_value_array_append_and_take_value(&array_, &v);
    }
    void add(GstStructure* structure) {  // takes it
        GValue v = G_VALUE_INIT;
        g_value_init(&v, GST_TYPE_STRUCTURE);
        g_value_take_boxed(&v, structure);
        gst_value_array_append_and_take_value(&array_, &v);
    }
    void move_to(GstStructure* structure, const char* field) {
        gst_structure_take_value(structure, field, &array_);
    }

private:
    GValue array_ = G_VALUE_INIT;
};

template <typename T>
void set_array(GstStructure* structure, const char* field, const std::vector<T>& values) {
    Array array;
    for (const T& value : values) array.add(value);
    array.move_to(structure, field);
}

const char* resize_nick(vartml::ResizeMode mode) {
    constexpr const char* nicks[] = {"stretch", "letterbox", "letterbox-top-left", "crop"};
    return nicks[static_cast<int>(mode)];
}

GstStructure* tensor_structure(const InferenceRecord& record, size_t i) {
    const vartml::TensorView& view = record.views[i];
    GstStructure* s = gst_structure_new(
        "vartml-tensor", "name", G_TYPE_STRING, record.outputs[i].name.c_str(), "id", G_TYPE_STRING,
        record.tensor_ids[i].c_str(), "view", G_TYPE_STRING, record.hw ? "hw" : "cpu", "data_type",
        G_TYPE_STRING, std::string(vartml::to_string(view.data_type)).c_str(), "layout",
        G_TYPE_STRING, std::string(vartml::to_string(view.layout)).c_str(), nullptr);
    set_array(s, "shape", view.shape);
    set_array(s, "cpu_shape", record.outputs[i].cpu.shape);
    if (view.quantisation) {
        gst_structure_set(s, "scale", G_TYPE_DOUBLE, view.quantisation->scale, "zero_point",
                          G_TYPE_INT, view.quantisation->zero_point, nullptr);
    }
    return s;
}

GstStructure* model_info_structure(const vartml::ModelInfo& info) {
    GstStructure* s =
        gst_structure_new("vartml-model-info", "decoder", G_TYPE_STRING, info.decoder.c_str(),
                          "class_offset", G_TYPE_INT, info.class_offset, nullptr);
    set_array(s, "labels", info.labels);
    if (info.num_classes)
        gst_structure_set(s, "num_classes", G_TYPE_UINT, *info.num_classes, nullptr);
    if (info.score_threshold)
        gst_structure_set(s, "score_threshold", G_TYPE_DOUBLE, *info.score_threshold, nullptr);
    if (info.iou_threshold)
        gst_structure_set(s, "iou_threshold", G_TYPE_DOUBLE, *info.iou_threshold, nullptr);
    if (info.max_detections)
        gst_structure_set(s, "max_detections", G_TYPE_UINT, *info.max_detections, nullptr);
    return s;
}

void add_record(GstStructure* s, const InferenceRecord& record) {
    gst_structure_set(s, "infer_id", G_TYPE_STRING, record.infer_id.c_str(), "model", G_TYPE_STRING,
                      record.model.c_str(), "model_hash", G_TYPE_STRING, record.model_hash.c_str(),
                      "model_epoch", G_TYPE_UINT, record.model_epoch, "model_w", G_TYPE_UINT,
                      record.model_width, "model_h", G_TYPE_UINT, record.model_height, nullptr);
    Array tensors;
    for (size_t i = 0; i < record.outputs.size(); ++i) tensors.add(tensor_structure(record, i));
    tensors.move_to(s, "tensors");
    GstStructure* model_info = model_info_structure(record.model_info);
    gst_structure_set(s, "model_info", GST_TYPE_STRUCTURE, model_info, nullptr);
    gst_structure_free(model_info);
}

GstStructure* to_structure(const Inference& i) {
    GstStructure* s = gst_structure_new(
        "vartml-inference", "status", G_TYPE_STRING, status_nick(i.status), "stream_id",
        G_TYPE_STRING, i.stream_id.c_str(), "frame_seq", G_TYPE_UINT64, i.frame_seq, "region_x",
        G_TYPE_INT, i.region_x, "region_y", G_TYPE_INT, i.region_y, "region_w", G_TYPE_INT,
        i.region_width, "region_h", G_TYPE_INT, i.region_height, "region_od", G_TYPE_INT,
        i.region_od, "frame_w", G_TYPE_UINT, i.frame_width, "frame_h", G_TYPE_UINT, i.frame_height,
        "resize", G_TYPE_STRING, resize_nick(i.resize), "geometry_valid", G_TYPE_BOOLEAN,
        gboolean(i.geometry_valid), "t_pre_us", G_TYPE_UINT64, i.pre_us, "t_wait_us", G_TYPE_UINT64,
        i.wait_us, "t_run_us", G_TYPE_UINT64, i.run_us, "t_total_us", G_TYPE_UINT64, i.total_us,
        "batch_fill", G_TYPE_UINT, i.batch_fill, "fate", G_TYPE_STRING, status_nick(i.fate),
        nullptr);
    if (i.has_result()) {
        gst_structure_set(s, "result_id", G_TYPE_UINT64, i.result_id, "result_seq", G_TYPE_UINT64,
                          i.result_seq, "age_ns", G_TYPE_UINT64, i.age_ns, nullptr);
    }
    if (i.tiles) {
        gst_structure_set(s, "tile", G_TYPE_UINT, i.tile, "tiles", G_TYPE_UINT, i.tiles, nullptr);
    }
    Array map;
    for (double v :
         {i.to_frame.a, i.to_frame.b, i.to_frame.c, i.to_frame.d, i.to_frame.e, i.to_frame.f})
        map.add(v);
    map.move_to(s, "to_frame");
    if (i.record) add_record(s, *i.record);
    return s;
}

}  // namespace
}  // namespace vartml::gst

GstAnalyticsMtdType gst_vartml_inference_mtd_get_mtd_type() {
    return vartml::gst::inference_mtd_type();
}

GstStructure* gst_vartml_inference_mtd_get_structure(const GstAnalyticsMtd* mtd) {
    g_return_val_if_fail(mtd, nullptr);
    return vartml::gst::is_inference(*mtd)
               ? vartml::gst::to_structure(*vartml::gst::payload_of(*mtd)->inference)
               : nullptr;
}

GstStructure* gst_vartml_inference_get_structure(GstBuffer* buffer, guint index) {
    g_return_val_if_fail(GST_IS_BUFFER(buffer), nullptr);
    const vartml::gst::Inference* inference = vartml::gst::get_inference(buffer, index);
    return inference ? vartml::gst::to_structure(*inference) : nullptr;
}
