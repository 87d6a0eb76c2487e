// SPDX-License-Identifier: Apache-2.0
#include "gst/gstvartmldecode.h"

#include <gst/check/gstharness.h>
#include <gst/video/video.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "gst/decode/tensor_meta.h"
#include "gst/support/inference.h"
#include "tests/support/gst_main.h"
#include "tests/vision/head_tensors.h"

namespace {

using namespace vartml;
using namespace vartml::gst;
using namespace vartml::test;

constexpr char frame_caps[] = "video/x-raw,format=GRAY8,width=128,height=96,framerate=30/1";
// A YOLO v8 head of a 64x64 input.
constexpr size_t positions = 64 + 16 + 4;

GstElement* make_decode() {
    return GST_ELEMENT(g_object_new(GST_TYPE_VARTML_DECODE, nullptr));
}

// A head whose boxes are set one by one: centre, size, one score per class.
RefTensor head(size_t classes, std::initializer_list<std::vector<float>> boxes) {
    RefTensor t{std::vector<float>(positions * (4 + classes)), positions, 4 + classes, true};
    size_t position = 0;
    for (const auto& box : boxes) {
        for (size_t a = 0; a < box.size(); ++a) t.data[a * positions + position] = box[a];
        ++position;
    }
    return t;
}

GstBuffer* data_buffer(const StoredTensor& tensor) {
    return gst_buffer_new_memdup(tensor.bytes.data(), tensor.bytes.size());
}

std::shared_ptr<InferenceRecord> record_of(const std::vector<StoredTensor>& tensors) {
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

Inference inference_of(std::shared_ptr<const InferenceRecord> record) {
    Inference inference;
    inference.record = std::move(record);
    inference.frame_width = 128;
    inference.frame_height = 96;
    inference.to_frame = {.a = 2, .b = 0, .c = 0, .d = 0, .e = 1.5, .f = 0};  // stretched
    return inference;
}

void add_tensor_meta(GstBuffer* buffer, const std::vector<StoredTensor>& tensors,
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

guint tensor_metas(GstBuffer* buffer) {
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
std::ostream& operator<<(std::ostream& out, const Box& b) {
    return out << b.x << "," << b.y << " " << b.w << "x" << b.h << " " << b.score << " " << b.label;
}

// The boxes as upstream's overlay finds them: ODs with the class that they are RELATE_TO.
std::vector<Box> boxes_of(GstBuffer* buffer) {
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
const std::vector<Box> two_boxes_in_frame = {{30, 24, 20, 12, 0.9f, "cat"},
                                             {92, 48, 16, 24, 0.7f, "dog"}};

TEST_F(Decode, TurnsTensorsIntoBoxesThatUpstreamReads) {
    open();
    const StoredTensor tensor = stored_cpu(two_boxes, "out");
    GstBuffer* data = data_buffer(tensor);
    GstBuffer* in = frame_with(inference_of(record_of({tensor})), {data});
    add_tensor_meta(in, {tensor}, {data});
    GST_BUFFER_PTS(in) = 5 * GST_SECOND;
    GST_BUFFER_DTS(in) = 4 * GST_SECOND;
    GST_BUFFER_DURATION(in) = 7;
    GST_BUFFER_OFFSET(in) = 11;
    GST_BUFFER_FLAG_SET(in, GST_BUFFER_FLAG_MARKER);
    const GstMemory* memory = gst_buffer_peek_memory(in, 0);

    GstBuffer* out = run(in);
    ASSERT_NE(out, nullptr);
    EXPECT_EQ(boxes_of(out), two_boxes_in_frame);
    EXPECT_EQ(GST_BUFFER_PTS(out), 5 * GST_SECOND);
    EXPECT_EQ(GST_BUFFER_DTS(out), 4 * GST_SECOND);
    EXPECT_EQ(GST_BUFFER_DURATION(out), 7u);
    EXPECT_EQ(GST_BUFFER_OFFSET(out), 11u);
    EXPECT_TRUE(GST_BUFFER_FLAG_IS_SET(out, GST_BUFFER_FLAG_MARKER));
    EXPECT_EQ(gst_buffer_peek_memory(out, 0), memory);

    // The tensors are gone at once, the record stays, and every box leads to it.
    EXPECT_EQ(tensor_metas(out), 0u);
    EXPECT_EQ(GST_MINI_OBJECT_REFCOUNT_VALUE(data), 1);
    GstAnalyticsMtd inference;
    const Inference* record = get_inference(out, 0, &inference);
    ASSERT_NE(record, nullptr);
    EXPECT_EQ(record->status, InferenceStatus::inferred);
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(out);
    gpointer state = nullptr;
    GstAnalyticsMtd od;
    while (gst_analytics_relation_meta_iterate(meta, &state, gst_analytics_od_mtd_get_mtd_type(),
                                               &od)) {
        EXPECT_EQ(gst_analytics_relation_meta_get_relation(meta, od.id, inference.id),
                  GST_ANALYTICS_REL_TYPE_RELATE_TO);
    }
    gst_buffer_unref(out);
    gst_buffer_unref(data);
    EXPECT_EQ(stat("frames"), 1u);
    EXPECT_EQ(stat("decoded"), 1u);
    EXPECT_EQ(stat("passed"), 0u);
    EXPECT_EQ(stat("boxes"), 2u);
}

TEST_F(Decode, ReadsTheNpusView) {
    open();
    for (const DataType type : {DataType::float32, DataType::bf16, DataType::int16}) {
        RefTensor t = two_boxes;
        const StoredTensor hw = stored_hw(t, "out", type, {1 / 256., 0});
        const auto boxes = decode(hw);
        ASSERT_EQ(boxes.size(), 2u);
        const StoredTensor cpu = stored_cpu(t, "out");  // of the dequantised values
        EXPECT_EQ(boxes, decode(cpu));
    }
    EXPECT_EQ(pop(GST_MESSAGE_ERROR), "");
}

TEST_F(Decode, SaysWhichDecoderItChose) {
    open();
    decode(stored_cpu(two_boxes, "out"));
    const std::string message = pop(GST_MESSAGE_ELEMENT);
    for (const char* part :
         {"vartml-decoder-selected", "decoder=(string)yolo-v8", "reason=(string)shapes",
          "classes=(uint)2", "labels=(uint)2", "model=(string)tiny"}) {
        EXPECT_NE(message.find(part), std::string::npos) << message;
    }
    EXPECT_EQ(pop(GST_MESSAGE_ELEMENT), "");
}

TEST_F(Decode, FollowsTheModelOfEachFrame) {
    open();
    const StoredTensor one = stored_cpu(two_boxes, "out");
    const StoredTensor other = stored_cpu(head(1, {{32, 32, 64, 64, 0.5f}}), "out");
    const auto first = record_of({one}), second = record_of({other});
    second->model_info.labels = {"whale"};
    for (int i = 0; i < 6; ++i) {
        const bool even = i % 2 == 0;
        GstBuffer* data = data_buffer(even ? one : other);
        GstBuffer* out = run(frame_with(inference_of(even ? first : second), {data}));
        ASSERT_NE(out, nullptr);
        EXPECT_EQ(boxes_of(out),
                  even ? two_boxes_in_frame : (std::vector<Box>{{0, 0, 128, 96, 0.5f, "whale"}}));
        gst_buffer_unref(out);
        gst_buffer_unref(data);
    }
    EXPECT_NE(pop(GST_MESSAGE_ELEMENT), "");
    EXPECT_NE(pop(GST_MESSAGE_ELEMENT), "");
    EXPECT_EQ(pop(GST_MESSAGE_ELEMENT), "");  // one per model
}

TEST_F(Decode, KeepsTensorsWhenAsked) {
    set("keep-tensors", TRUE);
    open();
    const StoredTensor tensor = stored_cpu(two_boxes, "out");
    GstBuffer* data = data_buffer(tensor);
    GstBuffer* in = frame_with(inference_of(record_of({tensor})), {data});
    add_tensor_meta(in, {tensor}, {data});
    GstBuffer* out = run(in);
    ASSERT_NE(out, nullptr);
    EXPECT_EQ(boxes_of(out).size(), 2u);  // decoded once, though it is there twice
    EXPECT_EQ(tensor_metas(out), 1u);
    EXPECT_EQ(get_inference(out, 0)->data.size(), 1u);
    gst_buffer_unref(out);
    gst_buffer_unref(data);
}

TEST_F(Decode, PassesFramesWithoutInference) {
    open();
    Inference skipped = inference_of(record_of({stored_cpu(two_boxes, "out")}));
    for (const InferenceStatus status :
         {InferenceStatus::skipped_interval, InferenceStatus::skipped_late,
          InferenceStatus::skipped_flag, InferenceStatus::failed}) {
        skipped.status = status;
        GstBuffer* out = run(frame_with(skipped, {}));
        ASSERT_NE(out, nullptr);
        EXPECT_TRUE(boxes_of(out).empty());
        EXPECT_EQ(get_inference(out, 0)->status, status);
        gst_buffer_unref(out);
    }
    EXPECT_EQ(stat("frames"), 4u);
    EXPECT_EQ(stat("passed"), 4u);
    EXPECT_EQ(pop(GST_MESSAGE_WARNING), "");
}

TEST_F(Decode, PassesWhatIsNoVideo) {
    open("application/x-whatever");
    GstBuffer* out = run(frame());
    ASSERT_NE(out, nullptr);
    EXPECT_EQ(gst_buffer_get_analytics_relation_meta(out), nullptr);
    gst_buffer_unref(out);
}

TEST_F(Decode, ReadsUpstreamsTensorsInPixelsOfTheCaps) {
    open("video/x-raw,format=GRAY8,width=64,height=64,framerate=30/1");
    const StoredTensor tensor = stored_cpu(two_boxes, "yolo-v8-out");
    GstBuffer* data = data_buffer(tensor);
    for (const bool shared : {false, true}) {
        GstBuffer* in = frame();
        add_tensor_meta(in, {tensor}, {data});
        if (shared) gst_buffer_ref(in);  // as behind a tee: the element works on a copy
        GstBuffer* out = run(in);
        ASSERT_NE(out, nullptr);
        EXPECT_EQ(boxes_of(out), (std::vector<Box>{{15, 16, 10, 8, 0.9f, "class-0"},
                                                   {46, 32, 8, 16, 0.7f, "class-1"}}));
        EXPECT_EQ(tensor_metas(out), 0u);
        gst_buffer_unref(out);
        if (shared) {
            EXPECT_EQ(tensor_metas(in), 1u);  // the other branch keeps its own
            EXPECT_TRUE(boxes_of(in).empty());
            gst_buffer_unref(in);
        }
    }
    EXPECT_EQ(GST_MINI_OBJECT_REFCOUNT_VALUE(data), 1);
    gst_buffer_unref(data);
    EXPECT_NE(pop(GST_MESSAGE_ELEMENT).find("reason=(string)ids"), std::string::npos);
}

TEST_F(Decode, DecodesARecordOnASharedFrame) {
    open();
    const StoredTensor tensor = stored_cpu(two_boxes, "out");
    GstBuffer* data = data_buffer(tensor);
    GstBuffer* in = frame_with(inference_of(record_of({tensor})), {data});
    GstBuffer* out = run(gst_buffer_ref(in));
    ASSERT_NE(out, nullptr);
    EXPECT_EQ(boxes_of(out), two_boxes_in_frame);
    EXPECT_EQ(get_inference(in, 0)->data.size(), 1u);
    gst_buffer_unref(out);
    gst_buffer_unref(in);
    EXPECT_EQ(GST_MINI_OBJECT_REFCOUNT_VALUE(data), 1);
    gst_buffer_unref(data);
}

TEST_F(Decode, MakesBoxesOfARegionPartOfIt) {
    open();
    const StoredTensor tensor = stored_cpu(two_boxes, "out");
    GstBuffer* data = data_buffer(tensor);
    GstBuffer* in = frame();
    GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(in);
    GstAnalyticsODMtd region;
    gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string("car"), 0, 0, 128, 96, 0.5f,
                                           &region);
    Inference inference = inference_of(record_of({tensor}));
    inference.region_od = static_cast<int>(region.id);
    inference.data = {data};
    ASSERT_TRUE(add_inference(in, inference, 100));
    GstBuffer* out = run(in);
    ASSERT_NE(out, nullptr);
    meta = gst_buffer_get_analytics_relation_meta(out);
    gpointer state = nullptr;
    GstAnalyticsMtd od;
    unsigned parts = 0;
    while (gst_analytics_relation_meta_iterate(meta, &state, gst_analytics_od_mtd_get_mtd_type(),
                                               &od)) {
        parts += gst_analytics_relation_meta_get_relation(meta, od.id, region.id) ==
                 GST_ANALYTICS_REL_TYPE_IS_PART_OF;
    }
    EXPECT_EQ(parts, 2u);
    gst_buffer_unref(out);
    gst_buffer_unref(data);
}

TEST_F(Decode, WritesClassesOfTheWholePicture) {
    set("top-k", 2u);
    open();
    StoredTensor tensor;
    tensor.info.name = "out";
    tensor.info.cpu = make_view(DataType::float32, Layout::GENERIC, {1, 2}, {0, 1});
    const float scores[] = {0.25f, 0.75f};
    tensor.bytes.assign(reinterpret_cast<const uint8_t*>(scores),
                        reinterpret_cast<const uint8_t*>(scores + 2));
    GstBuffer* data = data_buffer(tensor);
    GstBuffer* out = run(frame_with(inference_of(record_of({tensor})), {data}));
    ASSERT_NE(out, nullptr);
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(out);
    gpointer state = nullptr;
    GstAnalyticsMtd cls, inference;
    ASSERT_TRUE(gst_analytics_relation_meta_iterate(meta, &state,
                                                    gst_analytics_cls_mtd_get_mtd_type(), &cls));
    ASSERT_EQ(gst_analytics_cls_mtd_get_length(&cls), 2u);
    EXPECT_EQ(gst_analytics_cls_mtd_get_quark(&cls, 0), g_quark_from_string("dog"));
    EXPECT_EQ(gst_analytics_cls_mtd_get_level(&cls, 0), 0.75f);
    EXPECT_EQ(gst_analytics_cls_mtd_get_quark(&cls, 1), g_quark_from_string("cat"));
    ASSERT_NE(get_inference(out, 0, &inference), nullptr);
    EXPECT_EQ(gst_analytics_relation_meta_get_relation(meta, cls.id, inference.id),
              GST_ANALYTICS_REL_TYPE_RELATE_TO);
    gst_buffer_unref(out);
    gst_buffer_unref(data);
}

TEST_F(Decode, TakesChangedPropertiesWhilePlaying) {
    open();
    const StoredTensor tensor = stored_cpu(
        head(2, {{20, 20, 10, 8, 0.9f, 0}, {50, 40, 8, 16, 0, 0.7f}, {51, 40, 8, 16, 0.6f, 0}}),
        "out");
    const auto record = record_of({tensor});
    const auto count = [&] {
        GstBuffer* data = data_buffer(tensor);
        GstBuffer* out = run(frame_with(inference_of(record), {data}));
        gst_buffer_unref(data);
        const size_t boxes = out ? boxes_of(out).size() : 0;
        gst_clear_buffer(&out);
        return boxes;
    };
    EXPECT_EQ(count(), 3u);
    set("score-threshold", 0.65);
    EXPECT_EQ(count(), 2u);
    set("score-threshold", -1.0);
    gst_util_set_object_arg(G_OBJECT(element()), "nms", "class-agnostic");
    EXPECT_EQ(count(), 2u);
    set("iou-threshold", 0.95);
    EXPECT_EQ(count(), 3u);
    set("max-detections", 1u);
    EXPECT_EQ(count(), 1u);
    set("max-detections", 100u);
    set("classes", "cat, 1");
    EXPECT_EQ(count(), 3u);
    set("classes", "dog");
    EXPECT_EQ(count(), 1u);
    set("classes", nullptr);
    set("min-size", 13u);  // heights 12, 24, 24; widths 20, 16, 16
    EXPECT_EQ(count(), 2u);
    EXPECT_EQ(pop(GST_MESSAGE_ERROR), "");
}

TEST_F(Decode, WarnsOnceWhenMetadataGetLost) {
    open();
    decode(stored_cpu(two_boxes, "out"));
    for (int i = 0; i < 3; ++i) gst_buffer_unref(run(frame()));
    std::string text;
    EXPECT_EQ(pop(GST_MESSAGE_WARNING, &text).substr(0, 8), "dec-lost");
    EXPECT_NE(text.find("videocrop"), std::string::npos) << text;
    EXPECT_EQ(pop(GST_MESSAGE_WARNING), "");
}

TEST_F(Decode, ForgetsOnANewStreamThatFramesHadMetadata) {
    open();
    decode(stored_cpu(two_boxes, "out"));
    gst_harness_push_event(harness_, gst_event_new_stream_start("other"));
    gst_harness_set_src_caps_str(harness_, frame_caps);
    gst_buffer_unref(run(frame()));
    EXPECT_EQ(pop(GST_MESSAGE_WARNING), "");
}

TEST_F(Decode, CountsNumbersThatAreNotFinite) {
    open();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(
        decode(stored_cpu(head(2, {{20, 20, 10, 8, 0.9f, 0}, {nan, 20, 10, 8, 0.9f, 0}}), "out"))
            .size(),
        1u);
    EXPECT_EQ(stat("not-finite"), 1u);
}

TEST_F(Decode, LeavesOutBoxesWithoutAWholePixel) {
    open();
    EXPECT_TRUE(decode(stored_cpu(head(2, {{20.1f, 20, 0.1f, 8, 0.9f, 0}}), "out")).empty());
}

TEST_F(Decode, TakesManyBoxesOnOneFrame) {
    set("max-detections", 84u);
    gst_util_set_object_arg(G_OBJECT(element()), "nms", "off");
    open();
    RefTensor t = head(2, {});
    for (size_t p = 0; p < positions; ++p) {
        const float values[] = {20, 20, 10, 8, 0.9f, 0};
        for (size_t a = 0; a < 6; ++a) t.data[a * positions + p] = values[a];
    }
    EXPECT_EQ(decode(stored_cpu(t, "out")).size(),
              84u);  // more than fit the relation meta's first size
}

struct FaultRow {
    const char* why;
    const char* id;
    GQuark (*domain)();
    int code;
    std::vector<const char*> words;
    std::function<void(InferenceRecord&)> edit_record;
    std::function<void(Inference&)> edit_inference;
    std::function<void(GstElement*)> edit_element;
};
const std::string no_file = "/nonexistent/labels.txt";
const FaultRow fault_rows[] = {
    {"no family fits",
     "dec-unknown",
     gst_stream_error_quark,
     GST_STREAM_ERROR_TYPE_NOT_FOUND,
     {"[1,6,84]", "x-vartml-decoder"},
     [](InferenceRecord& r) { r.model_width = 96; },
     {},
     {}},
    {"labels of another model",
     "dec-classes",
     gst_stream_error_quark,
     GST_STREAM_ERROR_FORMAT,
     {"2 classes", "3 labels", "'out'"},
     [](InferenceRecord& r) { r.model_info.labels.push_back("bird"); },
     {},
     {}},
    {"positions of another input",
     "dec-positions",
     gst_stream_error_quark,
     GST_STREAM_ERROR_FORMAT,
     {"[1,6,84]", "96x64"},
     [](InferenceRecord& r) { r.model_width = 96; },
     {},
     [](GstElement* e) { gst_util_set_object_arg(G_OBJECT(e), "decoder", "yolo-v8"); }},
    {"a tensor that the family needs",
     "dec-role",
     gst_stream_error_quark,
     GST_STREAM_ERROR_FORMAT,
     {"scores", "out [1,6,84]"},
     {},
     {},
     [](GstElement* e) { gst_util_set_object_arg(G_OBJECT(e), "decoder", "ultraface"); }},
    {"borders added on the way",
     "dec-geometry",
     gst_stream_error_quark,
     GST_STREAM_ERROR_FORMAT,
     {"place vartmldecode directly after vartmlinfer, or scale without borders"},
     {},
     [](Inference& i) { i.geometry_valid = false; },
     {}},
    {"a class that the model does not have",
     "dec-classes",
     gst_resource_error_quark,
     GST_RESOURCE_ERROR_SETTINGS,
     {"'bird'", "2 labels"},
     {},
     {},
     [](GstElement* e) { g_object_set(e, "classes", "bird", nullptr); }},
    {"a label file that is not there, given while playing",
     "dec-labels",
     gst_resource_error_quark,
     GST_RESOURCE_ERROR_NOT_FOUND,
     {no_file.c_str()},
     {},
     {},
     [](GstElement* e) { g_object_set(e, "label-file", no_file.c_str(), nullptr); }},
    {"memory smaller than its shape",
     "dec-role",
     gst_stream_error_quark,
     GST_STREAM_ERROR_FORMAT,
     {"'out'", "2016", "4032"},
     [](InferenceRecord& r) { r.views[0].size_bytes *= 2; },
     {},
     {}},
};
class DecodeFaults : public Decode, public testing::WithParamInterface<FaultRow> {};
TEST_P(DecodeFaults, AreOneErrorWithItsId) {
    const FaultRow& row = GetParam();
    open();
    if (row.edit_element) row.edit_element(element());
    const StoredTensor tensor = stored_cpu(two_boxes, "out");
    auto record = record_of({tensor});
    if (row.edit_record) row.edit_record(*record);
    Inference inference = inference_of(record);
    if (row.edit_inference) row.edit_inference(inference);
    GstBuffer* data = data_buffer(tensor);
    EXPECT_EQ(run(frame_with(inference, {data})), nullptr) << row.why;
    gst_buffer_unref(data);
    EXPECT_EQ(flow_, GST_FLOW_ERROR);
    std::string text;
    EXPECT_EQ(pop(GST_MESSAGE_ERROR, &text), std::string(row.id) + " " +
                                                 g_quark_to_string(row.domain()) + " " +
                                                 std::to_string(row.code))
        << row.why << ": " << text;
    EXPECT_EQ(text.substr(0, 9), "Could not");
    for (const char* word : row.words)
        EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
    EXPECT_EQ(pop(GST_MESSAGE_ERROR), "");
}
INSTANTIATE_TEST_SUITE_P(Table, DecodeFaults, testing::ValuesIn(fault_rows));

// Errors of start need a pipeline: a harness aborts when the element does not start.
std::string start_error(const char* property, const std::string& value) {
    GstElement* pipeline = gst_pipeline_new(nullptr);
    GstElement* decode = make_decode();
    g_object_set(decode, property, value.c_str(), nullptr);
    gst_bin_add(GST_BIN(pipeline), decode);
    EXPECT_EQ(gst_element_set_state(pipeline, GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
    GstBus* bus = gst_element_get_bus(pipeline);
    std::string id;
    if (GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR)) {
        const GstStructure* details = nullptr;
        gst_message_parse_error_details(message, &details);
        id = std::string(gst_structure_get_string(details, "id")) + " " +
             gst_structure_get_string(details, "file");
        gst_message_unref(message);
    }
    gst_object_unref(bus);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(pipeline);
    return id;
}

TEST(DecodeStart, FailsWithoutItsFiles) {
    EXPECT_EQ(start_error("label-file", no_file), "dec-labels " + no_file);
    EXPECT_EQ(start_error("modelinfo-file", no_file), "dec-sidecar " + no_file);
}

class DecodeFiles : public Decode {
protected:
    void SetUp() override {
        std::string name = std::filesystem::temp_directory_path() / "vartmldecode-XXXXXX";
        folder_ = mkdtemp(name.data());
    }
    void TearDown() override {
        Decode::TearDown();
        std::filesystem::remove_all(folder_);
    }
    std::string write(const char* name, const char* text) {
        std::ofstream(folder_ / name) << text;
        return folder_ / name;
    }
    std::filesystem::path folder_;
};

std::vector<Box> labelled(const char* first, const char* second) {
    auto boxes = two_boxes_in_frame;
    boxes[0].label = first;
    boxes[1].label = second;
    return boxes;
}

TEST_F(DecodeFiles, PreferTheUsersLabels) {
    set("label-file", write("a.txt", "Katze\r\nHund\r\n").c_str());
    open();
    const StoredTensor tensor = stored_cpu(two_boxes, "out");
    EXPECT_EQ(decode(tensor), labelled("Katze", "Hund"));
    set("label-file", write("b.txt", "chat\nchien").c_str());
    EXPECT_EQ(decode(tensor), labelled("chat", "chien"));
    set("label-file", nullptr);
    EXPECT_EQ(decode(tensor), labelled("cat", "dog"));
}

TEST_F(DecodeFiles, GiveASidecarToTensorsWithoutOne) {
    set("modelinfo-file", write("m.modelinfo",
                                "[modelinfo]\nx-vartml-decoder=yolo-v8\nx-vartml-labels=a;b;\n"
                                "x-vartml-score-threshold=0.8\n")
                              .c_str());
    open("video/x-raw,format=GRAY8,width=64,height=64,framerate=30/1");
    const StoredTensor tensor = stored_cpu(two_boxes, "out");
    GstBuffer* data = data_buffer(tensor);
    GstBuffer* in = frame();
    add_tensor_meta(in, {tensor}, {data});
    gst_buffer_unref(data);
    GstBuffer* out = run(in);
    ASSERT_NE(out, nullptr);
    EXPECT_EQ(boxes_of(out), (std::vector<Box>{{15, 16, 10, 8, 0.9f, "a"}}));
    gst_buffer_unref(out);
}

TEST_F(Decode, RemovesTensorCapsAndOffersVideoMeta) {
    open();
    GstCaps* caps = gst_caps_from_string(frame_caps);
    GstQuery* query = gst_query_new_allocation(caps, TRUE);
    EXPECT_TRUE(gst_pad_peer_query(harness_->srcpad, query));
    EXPECT_TRUE(gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr));
    EXPECT_EQ(gst_query_get_n_allocation_pools(query), 0u);
    gst_query_unref(query);
    GstCaps* with = gst_caps_copy(caps);
    GstStructure* groups = gst_structure_new_empty("tensorgroups");
    gst_caps_set_simple(with, "tensors", GST_TYPE_STRUCTURE, groups, nullptr);
    gst_structure_free(groups);
    gst_harness_set_src_caps(harness_, with);
    gst_buffer_unref(run(frame()));
    GstCaps* out = gst_pad_get_current_caps(harness_->sinkpad);
    EXPECT_TRUE(gst_caps_is_equal(out, caps));
    gst_caps_unref(out);
    gst_caps_unref(caps);
}

TEST_F(Decode, SurvivesFlushesAndStateCycles) {
    open();
    const StoredTensor tensor = stored_cpu(two_boxes, "out");
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(decode(tensor).size(), 2u);
        gst_harness_push_event(harness_, gst_event_new_flush_start());
        gst_harness_push_event(harness_, gst_event_new_flush_stop(TRUE));
        GstSegment segment;
        gst_segment_init(&segment, GST_FORMAT_TIME);
        gst_harness_push_event(harness_, gst_event_new_segment(&segment));
        EXPECT_EQ(decode(tensor).size(), 2u);
    }
    for (int i = 0; i < 100; ++i) {
        GstElement* other = GST_ELEMENT(gst_object_ref_sink(make_decode()));
        gst_element_set_state(other, GST_STATE_PAUSED);
        gst_element_set_state(other, GST_STATE_NULL);
        gst_object_unref(other);
    }
    EXPECT_EQ(pop(GST_MESSAGE_ERROR), "");
}

// The leaks tracer (GST_TRACERS in meson.build) knows every object; run last, after the others have
// put theirs away.
TEST(ZDecodeLeaks, LeavesNoObjectBehind) {
    GList* tracers = gst_tracing_get_active_tracers();
    GstStructure* live = nullptr;
    for (GList* item = tracers; item; item = item->next) {
        if (g_str_has_prefix(G_OBJECT_TYPE_NAME(item->data), "GstLeaksTracer")) {
            g_signal_emit_by_name(item->data, "get-live-objects", &live);
        }
    }
    g_list_free_full(tracers, gst_object_unref);
    if (!live) GTEST_SKIP() << "the leaks tracer is not active";
    const GValue* list = gst_structure_get_value(live, "live-objects-list");
    for (guint i = 0; list && i < gst_value_list_get_size(list); ++i) {
        const GValue* item = gst_value_list_get_value(list, i);
        const auto* entry = static_cast<const GstStructure*>(g_value_get_boxed(item));
        const GValue* object = gst_structure_get_value(entry, "object");
        const std::string type = G_VALUE_TYPE_NAME(object);
        // What the process keeps on purpose: the harness's clock is the default one, factories are
        // cached.
        EXPECT_TRUE(type == "GstTestClock" || type == "GstElementFactory") << type;
    }
    gst_structure_free(live);
}

}  // namespace
