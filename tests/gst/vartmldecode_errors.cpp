// SPDX-License-Identifier: Apache-2.0
// Faults of tensors, and what comes from files.
#include "tests/gst/decode_harness.h"

namespace {

using namespace decode_test;

struct FaultRow {
    const char* why;
    const char* id;
    GQuark (*domain)();
    int code;
    std::vector<const char*> words;
    std::function<void(InferenceRecord&)> edit_record;
    std::function<void(Inference&)> edit_inference;
    std::function<void(GstElement*)> edit_element;
    const char* decoder = nullptr;  // before it starts
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
     {},
     "yolo-v8"},
    {"a decoder that is named and does not fit",
     "dec-unfit",
     gst_stream_error_quark,
     GST_STREAM_ERROR_FORMAT,
     {"out [1,6,84]", "are those of yolo-v8", "rows and columns exchanged"},
     [](InferenceRecord& r) { r.model_info.labels.clear(); },
     {},
     {},
     "yolox"},
    {"a tensor that the family needs",
     "dec-role",
     gst_stream_error_quark,
     GST_STREAM_ERROR_FORMAT,
     {"scores", "out [1,6,84]"},
     {},
     {},
     {},
     "ultraface"},
    {"borders added on the way",
     "dec-geometry",
     gst_stream_error_quark,
     GST_STREAM_ERROR_FORMAT,
     {"place vartmldecode directly after vartmlinfer, or keep the display aspect"},
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
    if (row.decoder) gst_util_set_object_arg(G_OBJECT(element()), "decoder", row.decoder);
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

TEST(DecodeStart, FailsWithTwoDecoders) {
    GstElement* decode = GST_ELEMENT(gst_object_ref_sink(make_decode()));
    gst_util_set_object_arg(G_OBJECT(decode), "decoder", "yolox");
    g_object_set(decode, "decoder-library", "own.so", nullptr);
    EXPECT_EQ(gst_element_set_state(decode, GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
    gst_element_set_state(decode, GST_STATE_NULL);
    gst_object_unref(decode);
}

TEST_F(Decode, NamesALibraryThatCannotBeLoaded) {
    set("decoder-library", "own.so");
    open();
    EXPECT_TRUE(decode(stored_cpu(two_boxes, "out")).empty());
    std::string text;
    EXPECT_EQ(pop(GST_MESSAGE_ERROR, &text).substr(0, 12), "dec-library ");
    EXPECT_NE(text.find("decoder library './own.so' cannot be loaded"), text.npos) << text;
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

// Elements of others call a tensor by its id, and there may be two of them.
TEST_F(DecodeFiles, MeanATensorByItsId) {
    set("modelinfo-file", write("m.modelinfo",
                                "[modelinfo]\nx-vartml-decoder=yolo-v8\nx-vartml-labels=a;b;\n"
                                "x-vartml-score-threshold=0.8\n[boxes]\ndir=output\nid=out\n")
                              .c_str());
    open("video/x-raw,format=GRAY8,width=64,height=64,framerate=30/1");
    GstBuffer* in = frame();
    for (const char* name : {"of another", "out"}) {
        const StoredTensor tensor = stored_cpu(two_boxes, name);
        GstBuffer* data = data_buffer(tensor);
        add_tensor_meta(in, {tensor}, {data});
        gst_buffer_unref(data);
    }
    GstBuffer* out = run(in);
    ASSERT_NE(out, nullptr);
    const Box box{15, 16, 10, 8, 0.9f, "a"};
    EXPECT_EQ(boxes_of(out), (std::vector<Box>{box, box}));
    gst_buffer_unref(out);
}

TEST_F(DecodeFiles, RefuseASectionOfATensorThatIsNotThere) {
    set("modelinfo-file",
        write("m.modelinfo", "[images]\ndir=input\n[uot]\ndir=output\nx-vartml-role=boxes\n")
            .c_str());
    open("video/x-raw,format=GRAY8,width=64,height=64,framerate=30/1");
    const StoredTensor tensor = stored_cpu(two_boxes, "out");
    GstBuffer* data = data_buffer(tensor);
    GstBuffer* in = frame();
    add_tensor_meta(in, {tensor}, {data});
    gst_buffer_unref(data);
    EXPECT_EQ(run(in), nullptr);
    std::string text;
    EXPECT_TRUE(pop(GST_MESSAGE_ERROR, &text).starts_with("dec-sidecar "));
    EXPECT_NE(text.find("section [uot]"), std::string::npos) << text;
}

}  // namespace
