// SPDX-License-Identifier: Apache-2.0
// What the tests of vartmldecode share: tensors of a small head, frames, and the element in a
// harness.
#pragma once
#include "gst/gstvartmldecode.h"

#include <gst/check/gstharness.h>
#include <gst/video/video.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>
#include "gst/metadata/inference.h"
#include "gst/support/tensor_meta.h"
#include "tests/support/gst_main.h"
#include "tests/vision/head_tensors.h"

namespace decode_test {

using namespace vartml;
using namespace vartml::gst;
using namespace vartml::test;

inline constexpr char frame_caps[] = "video/x-raw,format=GRAY8,width=128,height=96,framerate=30/1";
// A YOLO v8 head of a 64x64 input.
inline constexpr size_t positions = 64 + 16 + 4;

inline GstElement* make_decode() {
    return GST_ELEMENT(g_object_new(GST_TYPE_VARTML_DECODE, nullptr));
}

// A head whose boxes are set one by one: centre, size, one score per class.
inline RefTensor head(size_t classes, std::initializer_list<std::vector<float>> boxes) {
    RefTensor t{std::vector<float>(positions * (4 + classes)), positions, 4 + classes, true};
    size_t position = 0;
    for (const auto& box : boxes) {
        for (size_t a = 0; a < box.size(); ++a) t.data[a * positions + position] = box[a];
        ++position;
    }
    return t;
}

inline GstBuffer* data_buffer(const StoredTensor& tensor) {
    return gst_buffer_new_memdup(tensor.bytes.data(), tensor.bytes.size());
}

inline std::shared_ptr<InferenceRecord> record_of(const std::vector<StoredTensor>& tensors) {
    auto record = std::make_shared<InferenceRecord>();
    record->infer_id = "infer";
    record->model = "tiny";
    for (const StoredTensor& tensor : tensors) {
        record->outputs.push_back(tensor.info);
        record->views.push_back(tensor.info.hw ? *tensor.info.hw : tensor.info.cpu);
        record->tensor_ids.push_back(tensor.info.name);
        record->hw = tensor.info.hw.has_value();
    }
    record->model_info.labels = {"cat", "dog"};
    record->model_width = record->model_height = 64;
    return record;
}

inline Inference inference_of(std::shared_ptr<const InferenceRecord> record) {
    Inference inference;
    inference.record = std::move(record);
    inference.frame_width = 128;
    inference.frame_height = 96;
    inference.to_frame = {.a = 2, .b = 0, .c = 0, .d = 0, .e = 1.5, .f = 0};  // stretched
    return inference;
}

inline void add_tensor_meta(GstBuffer* buffer, const std::vector<StoredTensor>& tensors,
                            const std::vector<GstBuffer*>& data) {
    GstTensor** list = g_new(GstTensor*, data.size());
    for (size_t i = 0; i < data.size(); ++i) {
        const auto& shape = tensors[i].info.cpu.shape;
        list[i] = gst_tensor_alloc(shape.size());
        list[i]->id = g_quark_from_string(tensors[i].info.name.c_str());
        list[i]->data_type = GST_TENSOR_DATA_TYPE_FLOAT32;
        list[i]->data = gst_buffer_ref(data[i]);
        for (size_t k = 0; k < shape.size(); ++k) list[i]->dims[k] = shape[k];
    }
    auto* meta = reinterpret_cast<GstTensorMeta*>(
        gst_buffer_add_meta(buffer, GST_TENSOR_META_INFO, nullptr));
    gst_tensor_meta_set(meta, static_cast<guint>(data.size()), list);
}

inline guint tensor_metas(GstBuffer* buffer) {
    guint count = 0;
    for_each_tensor_meta(buffer, [&](GstTensorMeta*) { return ++count > 0; });
    return count;
}

struct Box {
    int x, y, w, h;
    float score;
    std::string label;
    bool operator==(const Box&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Box& b) {
    return out << b.x << "," << b.y << " " << b.w << "x" << b.h << " " << b.score << " " << b.label;
}

// The boxes as upstream's overlay finds them: ODs with the class that they are RELATE_TO.
inline std::vector<Box> boxes_of(GstBuffer* buffer) {
    std::vector<Box> boxes;
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    gpointer state = nullptr;
    GstAnalyticsMtd od, cls;
    while (meta && gst_analytics_relation_meta_iterate(meta, &state,
                                                       gst_analytics_od_mtd_get_mtd_type(), &od)) {
        Box box{};
        gst_analytics_od_mtd_get_location(&od, &box.x, &box.y, &box.w, &box.h, &box.score);
        EXPECT_TRUE(gst_analytics_relation_meta_get_direct_related(
            meta, od.id, GST_ANALYTICS_REL_TYPE_RELATE_TO, gst_analytics_cls_mtd_get_mtd_type(),
            nullptr, &cls));
        EXPECT_EQ(gst_analytics_cls_mtd_get_level(&cls, 0), box.score);
        EXPECT_EQ(gst_analytics_cls_mtd_get_quark(&cls, 0), gst_analytics_od_mtd_get_obj_type(&od));
        box.label = g_quark_to_string(gst_analytics_cls_mtd_get_quark(&cls, 0));
        boxes.push_back(box);
    }
    return boxes;
}

// The element with a bus, between a harness's pads.
class Decode : public testing::Test {
protected:
    void TearDown() override {
        if (harness_) gst_harness_teardown(harness_);
        if (element_) gst_element_set_bus(element_, nullptr);  // its messages refer to it
        if (element_) gst_object_unref(element_);
        if (bus_) gst_object_unref(bus_);
    }
    void open(const char* caps = frame_caps) {
        bus_ = gst_bus_new();
        gst_element_set_bus(element(), bus_);
        harness_ = gst_harness_new_with_element(element(), "sink", "src");
        gst_harness_set_src_caps_str(harness_, caps);
    }
    GstElement* element() {
        if (!element_) element_ = GST_ELEMENT(gst_object_ref_sink(make_decode()));
        return element_;
    }
    template <typename... Values>
    void set(const char* name, Values... values) {
        g_object_set(element(), name, values..., nullptr);
    }
    // Pushes a frame (created without tensors) and gives what comes out.
    GstBuffer* run(GstBuffer* frame) {
        flow_ = gst_harness_push(harness_, frame);
        return flow_ == GST_FLOW_OK ? gst_harness_pull(harness_) : nullptr;
    }
    GstBuffer* frame() { return gst_buffer_new_allocate(nullptr, 128 * 96, nullptr); }
    GstBuffer* frame_with(const Inference& inference, const std::vector<GstBuffer*>& data) {
        GstBuffer* buffer = frame();
        Inference with = inference;
        with.data = data;
        EXPECT_TRUE(add_inference(buffer, with, 100));
        return buffer;
    }
    // Runs one frame with the tensor and gives the boxes.
    std::vector<Box> decode(const StoredTensor& tensor,
                            const std::function<void(InferenceRecord&)>& edit = {}) {
        auto record = record_of({tensor});
        if (edit) edit(*record);
        GstBuffer* data = data_buffer(tensor);
        GstBuffer* out = run(frame_with(inference_of(record), {data}));
        gst_buffer_unref(data);
        if (!out) return {};
        auto boxes = boxes_of(out);
        gst_buffer_unref(out);
        return boxes;
    }
    // The next message of a type; its structure `details` of errors and warnings.
    std::string pop(GstMessageType type, std::string* text = nullptr) {
        GstMessage* message = gst_bus_pop_filtered(bus_, type);
        if (!message) return "";
        std::string id;
        if (type == GST_MESSAGE_ELEMENT) {
            gchar* all = gst_structure_to_string(gst_message_get_structure(message));
            id = all;
            g_free(all);
        } else {
            GError* error = nullptr;
            const GstStructure* details = nullptr;
            if (type == GST_MESSAGE_ERROR) {
                gst_message_parse_error(message, &error, nullptr);
                gst_message_parse_error_details(message, &details);
            } else {
                gst_message_parse_warning(message, &error, nullptr);
                gst_message_parse_warning_details(message, &details);
            }
            id = gst_structure_get_string(details, "id");
            id += std::string(" ") + g_quark_to_string(error->domain) + " " +
                  std::to_string(error->code);
            if (text) *text = error->message;
            g_error_free(error);
        }
        gst_message_unref(message);
        return id;
    }
    guint64 stat(const char* name) {
        GstStructure* stats = nullptr;
        g_object_get(element(), "stats", &stats, nullptr);
        guint64 value = G_MAXUINT64;
        gst_structure_get_uint64(stats, name, &value);
        gst_structure_free(stats);
        return value;
    }

    GstHarness* harness_ = nullptr;
    GstElement* element_ = nullptr;
    GstBus* bus_ = nullptr;
    GstFlowReturn flow_ = GST_FLOW_OK;
};

// Two boxes; in the 128x96 frame x doubles and y grows by a half.
const RefTensor two_boxes = head(2, {{20, 20, 10, 8, 0.9f, 0.1f}, {50, 40, 8, 16.2f, 0, 0.7f}});
inline const std::vector<Box> two_boxes_in_frame = {{30, 24, 20, 12, 0.9f, "cat"},
                                                    {92, 48, 16, 24, 0.7f, "dog"}};

}  // namespace decode_test
