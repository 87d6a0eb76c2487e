// SPDX-License-Identifier: Apache-2.0
// The plugin as installed beside GStreamer 1.28's own elements: its tensor decoders read our
// tensors, its tensordecodebin finds our decoder, and ours reads the tensors of its onnxinference.
// Each model writes what the test says, so that all must find the same.
#include <gst/analytics/analytics.h>
#include <gst/gst.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/gst_main.h"
#include "tests/support/temp_dir.h"

namespace {

using vartml::test::spill;
using vartml::test::TempDir;

struct Box {
    int x, y, width, height;
    float score;
};
struct Found {
    std::vector<Box> boxes;             // of the last frame, by x
    std::vector<std::string> classes;   // of its whole picture, the best of each
    std::vector<std::string> decoders;  // in a tensordecodebin
    std::string error;
    unsigned frames = 0;
};

void on_frame(GstElement*, GstBuffer* buffer, GstPad*, gpointer user) {
    auto& found = *static_cast<Found*>(user);
    ++found.frames;
    found.boxes.clear();
    found.classes.clear();
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    gpointer state = nullptr;
    GstAnalyticsMtd mtd;
    while (meta &&
           gst_analytics_relation_meta_iterate(meta, &state, GST_ANALYTICS_MTD_TYPE_ANY, &mtd)) {
        const GstAnalyticsMtdType type = gst_analytics_mtd_get_mtd_type(&mtd);
        if (type == gst_analytics_od_mtd_get_mtd_type()) {
            Box box;
            gst_analytics_od_mtd_get_location(reinterpret_cast<GstAnalyticsODMtd*>(&mtd), &box.x,
                                              &box.y, &box.width, &box.height, &box.score);
            found.boxes.push_back(box);
        } else if (type == gst_analytics_cls_mtd_get_mtd_type()) {
            const GQuark label =
                gst_analytics_cls_mtd_get_quark(reinterpret_cast<GstAnalyticsClsMtd*>(&mtd), 0);
            found.classes.emplace_back(label ? g_quark_to_string(label) : "");
        }
    }
    std::ranges::sort(found.boxes, {}, &Box::x);
}

Found run(const std::string& frames, const std::string& behind) {
    Found found;
    const std::string line = "videotestsrc num-buffers=3 ! " + frames + " ! " + behind +
                             " ! fakesink name=out signal-handoffs=true";
    GError* error = nullptr;
    GstElement* pipeline = gst_parse_launch(line.c_str(), &error);
    if (!pipeline || error) {
        ADD_FAILURE() << line << ": " << (error ? error->message : "no pipeline");
        return found;
    }
    GstElement* out = gst_bin_get_by_name(GST_BIN(pipeline), "out");
    g_signal_connect(out, "handoff", G_CALLBACK(on_frame), &found);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    GstBus* bus = gst_element_get_bus(pipeline);
    GstMessage* message = gst_bus_timed_pop_filtered(
        bus, 60 * GST_SECOND, GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
    if (!message) {
        found.error = "no end";
    } else if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
        gst_message_parse_error(message, &error, nullptr);
        found.error = error->message;
        g_error_free(error);
    }
    if (message) gst_message_unref(message);
    if (GstElement* bin = gst_bin_get_by_name(GST_BIN(pipeline), "bin")) {
        for (GList* child = GST_BIN_CHILDREN(bin); child; child = child->next)
            found.decoders.emplace_back(gst_plugin_feature_get_name(
                GST_PLUGIN_FEATURE(gst_element_get_factory(GST_ELEMENT(child->data)))));
        gst_object_unref(bin);
    }
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(bus);
    gst_object_unref(out);
    gst_object_unref(pipeline);
    return found;
}

// An ONNX file, written by hand: libonnx in this process would be in the way of ONNX Runtime's own,
// which onnxinference brings. Numbers of fields: given, onnx.proto.
class Message {
public:
    Message& number(int field, uint64_t value) {
        varint(uint64_t(field) << 3);
        varint(value);
        return *this;
    }
    Message& bytes(int field, std::string_view value) {
        varint(uint64_t(field) << 3 | 2);
        varint(value.size());
        text_ += value;
        return *this;
    }
    Message& message(int field, const Message& value) { return bytes(field, value.text_); }
    const std::string& text() const { return text_; }

private:
    void varint(uint64_t value) {
        for (; value >= 128; value >>= 7) text_ += char((value & 127) | 128);
        text_ += char(value);
    }
    std::string text_;
};

Message tensor(const std::string& name, const std::vector<int64_t>& shape,
               const std::vector<float>& values) {
    Message m;
    for (const int64_t dim : shape) m.number(1, uint64_t(dim));
    m.number(2, 1).bytes(8, name);  // float32
    m.bytes(9, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
    return m;
}

Message value_info(const std::string& name, const std::vector<int64_t>& shape) {
    Message dims;
    for (const int64_t dim : shape) dims.message(1, Message().number(1, uint64_t(dim)));
    return Message().bytes(1, name).message(
        2, Message().message(1, Message().number(1, 1).message(2, dims)));
}

Message node(const char* op, const std::vector<std::string>& inputs, const std::string& output) {
    Message m;
    for (const std::string& input : inputs) m.bytes(1, input);
    return m.bytes(2, output).bytes(3, output).bytes(4, op);
}

struct Output {
    const char* name;
    std::vector<int64_t> shape;
    std::vector<float> values;
    const char* end = "";  // an operator behind them
};

struct Model {
    const char* why;
    int width, height;
    std::vector<Output> outputs;
    const char* sidecar;  // upstream's keys of [modelinfo] and of the outputs
    const char* upstream;
    std::vector<std::array<int, 4>> boxes;   // x, y, width, height in frames of that size
    std::vector<std::array<int, 2>> frames;  // sizes that upstream's decoder can read
    bool needs_ids = false;                  // without a sidecar nobody knows that it is theirs
    bool alone = false;  // upstream's decoder takes fright at tensors of others on the frame
};

std::vector<float> filled(size_t count, std::vector<std::pair<size_t, float>> values) {
    std::vector<float> all(count, 0);
    for (const auto& [at, value] : values) all[at] = value;
    return all;
}

// A head of YOLO v8 over an input of 64x64: a box in the middle of each of the 84 cells, two of
// them with a score.
constexpr size_t cells = 64 + 16 + 4;
std::vector<float> yolo(size_t rows) {
    std::vector<float> all(rows * cells, 0);
    const auto put = [&](size_t cell, std::initializer_list<float> column) {
        for (size_t row = 0; const float value : column) all[row++ * cells + cell] = value;
    };
    size_t cell = 0;
    for (const size_t stride : {8, 16, 32})
        for (size_t y = stride / 2; y < 64; y += stride)
            for (size_t x = stride / 2; x < 64; x += stride)
                put(cell++, {float(x), float(y), 8, 8, 0, 0});
    put(18, {20, 20, 16, 12, 0.9f, 0.05f});
    put(45, {48, 40, 20, 24, 0.1f, 0.8f});
    if (rows > 6) all[6 * cells + 18] = all[6 * cells + 45] = 4;  // a coefficient of their masks
    return all;
}

std::vector<float> faces(bool scores) {
    return scores ? filled(size_t(4420) * 2, {{1, 0.95f}, {2 * 100 + 1, 0.8f}})
                  : filled(size_t(4420) * 4, {{0, 0.1f},
                                              {1, 0.2f},
                                              {2, 0.3f},
                                              {3, 0.5f},
                                              {400, 0.6f},
                                              {401, 0.4f},
                                              {402, 0.8f},
                                              {403, 0.9f}});
}

const Model models[] = {
    {"YOLO v8",
     64,
     64,
     {{"output0", {1, 6, 84}, yolo(6)}},
     "group-id=yolo-v8-out\n[output0]\nid=yolo-v8-out\ndims-order=col-major\n",
     "yolov8tensordec",
     {{12, 14, 16, 12}, {38, 28, 20, 24}},
     {{64, 64}}},
    {"YOLO v8 with masks",
     64,
     64,
     {{"output0", {1, 38, 84}, yolo(38)}, {"output1", {1, 32, 16, 16}, filled(32 * 256, {{0, 1}})}},
     "group-id=yolo-v8-segmentation-out\n[output0]\nid=yolo-v8-segmentation-out-detections\n"
     "dims-order=col-major\n[output1]\nid=yolo-v8-segmentation-out-protos\ndims-order=col-major\n",
     "yolosegv8tensordec",
     {{12, 14, 16, 12}, {38, 28, 20, 24}},
     {{64, 64}}},
    {"faces",
     320,
     240,
     {{"boxes", {1, 4420, 4}, faces(false)}, {"scores", {1, 4420, 2}, faces(true)}},
     "group-id=ultra-lightweight-face-detection-rfb-320-v1-variant-1-out\n"
     "[boxes]\nid=ssd-mobilenet-v1-variant-1-out-boxes\n"
     "[scores]\nid=ultra-lightweight-face-detection-rfb-320-v1-variant-1-out-scores\n",
     "ultralightfacedetectortensordec",
     {{32, 48, 64, 72}, {192, 96, 64, 120}},
     {{320, 240}, {640, 480}, {200, 300}},
     true,
     true},
};

class TensorDecoders : public testing::Test {
protected:
    void SetUp() override {
        for (const char* name : {"tensordecodebin", "vartmltensordec"}) {
            GstElementFactory* factory = gst_element_factory_find(name);
            if (!factory)
                GTEST_SKIP() << "there is no element " << name << "; it comes with GStreamer 1.28";
            gst_object_unref(factory);
        }
    }

    // `described`: with upstream's sidecar beside it.
    std::string model(const Model& m, bool described) {
        const std::string name = described ? "described" : "plain";
        // What the outputs are, and next to nothing of the picture; no sum, which would say logits.
        Message mean = node("ReduceMean", {"images"}, "mean");
        mean.message(5, Message().bytes(1, "keepdims").number(3, 0).number(20, 2));
        Message graph;
        graph.message(1, mean).message(1, node("Mul", {"mean", "tiny"}, "almost_zero"));
        graph.bytes(2, "constants").message(5, tensor("tiny", {}, {1e-12f}));
        graph.message(11, value_info("images", {1, 3, m.height, m.width}));
        std::string sidecar = "[modelinfo]\nversion=1.0\n" + std::string(m.sidecar);
        std::string sections =
            "[images]\ndir=input\ntype=float32\nranges=0.0,1.0;0.0,1.0;0.0,1.0\n"
            "dims=1,3," +
            std::to_string(m.height) + "," + std::to_string(m.width) + "\n";
        for (const Output& output : m.outputs) {
            const std::string values = std::string(output.name) + "_values";
            std::string dims;
            for (const int64_t dim : output.shape)
                dims += (dims.empty() ? "" : ",") + std::to_string(dim);
            graph.message(5, tensor(values, output.shape, output.values))
                .message(1, node("Max", {values, "almost_zero"},
                                 *output.end ? values + "_as_they_are" : output.name))
                .message(12, value_info(output.name, output.shape));
            if (*output.end)
                graph.message(1, node(output.end, {values + "_as_they_are"}, output.name));
            const std::string section = "[" + std::string(output.name) + "]\n";
            sidecar.insert(sidecar.find(section) + section.size(),
                           "dir=output\ntype=float32\ndims=" + dims + "\n");
        }
        const std::string path = dir_ / (name + ".onnx");
        spill(path,
              Message().number(1, 8).message(7, graph).message(8, Message().number(2, 17)).text());
        if (described) spill(path + ".modelinfo", sidecar + sections);
        return path;
    }
    std::string infer(const Model& m, bool described) {
        return "vartmlinfer model=" + model(m, described) + " cache-dir=" + (dir_ / "cache");
    }

    TempDir dir_;
};
class TensorDecoderModels : public TensorDecoders, public testing::WithParamInterface<Model> {};

std::string frames(int width, int height, const char* format = "RGB") {
    return "video/x-raw,framerate=30/1,format=" + std::string(format) +
           ",width=" + std::to_string(width) + ",height=" + std::to_string(height);
}

void expect_boxes(const Model& m, const Found& found, int width, int height, const char* who) {
    EXPECT_EQ(found.error, "") << m.why << ": " << who;
    EXPECT_EQ(found.frames, 3u) << m.why << ": " << who;
    ASSERT_EQ(found.boxes.size(), m.boxes.size()) << m.why << ": " << who;
    const double sx = double(width) / m.width, sy = double(height) / m.height;
    for (size_t i = 0; i < m.boxes.size(); ++i) {
        const Box& box = found.boxes[i];
        EXPECT_NEAR(box.x, m.boxes[i][0] * sx, 1) << m.why << ": " << who;
        EXPECT_NEAR(box.y, m.boxes[i][1] * sy, 1) << m.why << ": " << who;
        EXPECT_NEAR(box.width, m.boxes[i][2] * sx, 1.5) << m.why << ": " << who;
        EXPECT_NEAR(box.height, m.boxes[i][3] * sy, 1.5) << m.why << ": " << who;
    }
}

using Names = std::vector<std::string>;

TEST_P(TensorDecoderModels, OfGStreamerReadOurs) {
    const Model& m = GetParam();
    for (const bool described : {false, true}) {
        if (!described && m.needs_ids) continue;
        for (const auto& [width, height] : m.frames)
            expect_boxes(m, run(frames(width, height), infer(m, described) + " ! " + m.upstream),
                         width, height, described ? "described" : "by its family");
    }
}

TEST_P(TensorDecoderModels, AreFoundByTheBin) {
    const Model& m = GetParam();
    // Ours, who knows of borders and regions, unless the sidecar names upstream's.
    for (const bool described : {false, true}) {
        const Found found =
            run(frames(m.width, m.height), infer(m, described) + " ! tensordecodebin name=bin");
        expect_boxes(m, found, m.width, m.height, "in the bin");
        EXPECT_EQ(found.decoders, Names{described ? m.upstream : "vartmltensordec"}) << m.why;
    }
}

TEST_P(TensorDecoderModels, OfOursReadUpstreamsInference) {
    const Model& m = GetParam();
    const std::string theirs = "onnxinference model-file=" + model(m, true);
    expect_boxes(m, run(frames(m.width, m.height), theirs + " ! vartmldecode"), m.width, m.height,
                 "vartmldecode behind onnxinference");
    expect_boxes(m, run(frames(m.width, m.height), theirs + " ! " + m.upstream), m.width, m.height,
                 "both upstream's");
}

TEST_P(TensorDecoderModels, OfOursFindTheSameInFramesOfAnySize) {
    const Model& m = GetParam();
    if (m.frames.size() > 1) GTEST_SKIP() << "the frame is stretched to the input";
    // Letterboxed: twice as large, with borders above and below.
    const Found found =
        run(frames(2 * m.width, m.height), infer(m, true) + " ! tensordecodebin name=bin");
    EXPECT_EQ(found.error, "");
    EXPECT_EQ(found.decoders, Names{"vartmltensordec"}) << m.why;
    ASSERT_EQ(found.boxes.size(), m.boxes.size());
    for (size_t i = 0; i < m.boxes.size(); ++i) {
        EXPECT_NEAR(found.boxes[i].x, 2 * m.boxes[i][0], 1);
        EXPECT_NEAR(found.boxes[i].width, 2 * m.boxes[i][2], 1.5);
        EXPECT_NEAR(found.boxes[i].y, std::max(2 * m.boxes[i][1] - m.height / 2, 0), 1);
    }
    const Found refused = run(frames(2 * m.width, m.height), infer(m, true) + " ! " + m.upstream);
    EXPECT_NE(refused.error.find("scale them before vartmlinfer"), std::string::npos)
        << refused.error;
}

// As upstream's documentation has it: a scaler before the inference.
TEST_P(TensorDecoderModels, OfGStreamerGetFramesOfTheSizeThatTheyNeed) {
    const Model& m = GetParam();
    if (m.frames.size() > 1) GTEST_SKIP() << "frames of any size will do";
    const Found found = run(frames(2 * m.width, m.height),
                            "videoconvertscale ! " + infer(m, true) + " ! " + m.upstream);
    expect_boxes(m, found, m.width, m.height, "behind a scaler");
}

// Two models in a row, of which each decoder reads its own.
TEST_P(TensorDecoderModels, ReadTheirOwnOfTwoModels) {
    const Model& m = GetParam();
    if (m.alone)
        GTEST_SKIP() << m.upstream << " of 1.28 ends with an error where others have tensors";
    const Found found =
        run(frames(m.width, m.height), "onnxinference model-file=" + model(m, true) + " ! " +
                                           infer(m, false) + " ! tensordecodebin name=bin");
    EXPECT_EQ(found.error, "") << m.why;
    Names decoders = found.decoders, expected = {"vartmltensordec", m.upstream};
    std::ranges::sort(decoders);
    std::ranges::sort(expected);
    EXPECT_EQ(decoders, expected) << m.why;
    EXPECT_EQ(found.boxes.size(), 2 * m.boxes.size()) << m.why;
}

// Elements between inference and decoder that tell what they do to the frame.
TEST_P(TensorDecoderModels, OfOursFollowWhatCropsAndScales) {
    const Model& m = GetParam();
    const std::string line = infer(m, true);
    struct Row {
        const char* between;
        bool borders;
        int left, top;
    };
    const Row rows[] = {
        {"videoconvert ! video/x-raw,format=I420", false, 0, 0},
        {"videocrop left=4 top=6", false, -4, -6},
        {"videoconvertscale add-borders=true ! "
         "video/x-raw,width=@W,height=@H,pixel-aspect-ratio=1/1",
         true, 0, 0},
    };
    for (const Row& row : rows) {
        std::string between = row.between;
        // Twice as high, which gives borders above and below.
        for (const auto& [word, value] : {std::pair{"@W", m.width}, {"@H", 2 * m.height}})
            if (const size_t at = between.find(word); at != std::string::npos)
                between.replace(at, 2, std::to_string(value));
        const int top = row.borders ? m.height / 2 : row.top;
        const Found found =
            run(frames(m.width, m.height), line + " ! " + between + " ! vartmldecode");
        EXPECT_EQ(found.error, "") << between;
        ASSERT_EQ(found.boxes.size(), m.boxes.size()) << between;
        for (size_t i = 0; i < m.boxes.size(); ++i) {
            EXPECT_NEAR(found.boxes[i].x, m.boxes[i][0] + row.left, 1) << between;
            EXPECT_NEAR(found.boxes[i].y, m.boxes[i][1] + top, 1) << between;
        }
    }
    const Found mirrored =
        run(frames(m.width, m.height), line + " ! videoflip method=horizontal-flip ! vartmldecode");
    EXPECT_NE(mirrored.error.find("mirrored"), std::string::npos) << mirrored.error;
}

INSTANTIATE_TEST_SUITE_P(All, TensorDecoderModels, testing::ValuesIn(models),
                         [](const auto& row) { return "Model" + std::to_string(row.index); });

TEST_F(TensorDecoders, OfListsReadOursInFramesOfAnySize) {
    const Model m = {
        "SSD",
        64,
        64,
        {{"detection_boxes",
          {1, 4, 4},
          {0.5f, 0.125f, 0.875f, 0.4375f, 0.125f, 0.5f, 0.4375f, 0.875f, 0, 0, 0, 0, 0, 0, 0, 0}},
         {"detection_classes", {1, 4}, {1, 2, 1, 1}},
         {"detection_scores", {1, 4}, {0.9f, 0.8f, 0, 0}},
         {"num_detections", {1}, {2}}},
        "group-id=ssd-mobilenet-v1-variant-1-out\n"
        "[detection_boxes]\nid=ssd-mobilenet-v1-variant-1-out-boxes\n"
        "[detection_classes]\nid=ssd-mobilenet-v1-variant-1-out-classes\n"
        "[detection_scores]\nid=ssd-mobilenet-v1-variant-1-out-scores\n"
        "[num_detections]\nid=generic-variant-1-out-count\n",
        "ssdtensordec",
        {{8, 32, 20, 24}, {32, 8, 24, 20}},
        {{64, 64}, {200, 100}},
    };
    const std::string line = infer(m, true);
    for (const auto& [width, height] : m.frames) {
        expect_boxes(m, run(frames(width, height), line + " ! ssdtensordec"), width, height,
                     "ssdtensordec");
        expect_boxes(m, run(frames(width, height), line + " ! vartmldecode"), width, height,
                     "vartmldecode");
    }
    const Found found = run(frames(64, 64), line + " ! tensordecodebin name=bin");
    expect_boxes(m, found, 64, 64, "in the bin");
    EXPECT_EQ(found.decoders, Names{"ssdtensordec"});
    expect_boxes(
        m, run(frames(64, 64), "onnxinference model-file=" + model(m, true) + " ! vartmldecode"),
        64, 64, "behind onnxinference");
}

TEST_F(TensorDecoders, OfClassesReadOurs) {
    const Model m = {
        "a classifier",
        32,
        32,
        {{"prob", {1, 3}, {0.1f, 4, 0.3f}, "Softmax"}},
        "group-id=classification-generic-softmaxed-out\nx-vartml-decoder=classify\n"
        "[prob]\nid=classification-generic-softmaxed-out\n",
        "classifiertensordecoder",
        {},
        {},
    };
    const std::string line = infer(m, true);
    const std::string theirs = "onnxinference model-file=" + model(m, true);
    for (const std::string& pipeline :
         {line + " ! classifiertensordecoder", line + " ! tensordecodebin",
          line + " ! vartmldecode", theirs + " ! vartmldecode decoder=classify"}) {
        const Found found = run(frames(32, 32), pipeline);
        EXPECT_EQ(found.error, "") << pipeline;
        ASSERT_FALSE(found.classes.empty()) << pipeline;
        EXPECT_TRUE(found.classes[0].ends_with('1')) << found.classes[0] << ": " << pipeline;
    }
}

}  // namespace
