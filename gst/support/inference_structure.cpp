// SPDX-License-Identifier: Apache-2.0
// The record of an inference as a GstStructure, for applications in C and in languages that bind
// GStreamer.
#include <gst/vartml/inference.h>

#include "gst/support/inference.h"

namespace vartml::gst {
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

GstStructure* gst_vartml_inference_get_structure(GstBuffer* buffer, guint index) {
    g_return_val_if_fail(GST_IS_BUFFER(buffer), nullptr);
    const vartml::gst::Inference* inference = vartml::gst::get_inference(buffer, index);
    return inference ? vartml::gst::to_structure(*inference) : nullptr;
}
