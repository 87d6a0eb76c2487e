// SPDX-License-Identifier: Apache-2.0
// vartmlinfer and the vartmldecode behind it agree on the decoder family before the first frame
// becomes a tensor, whatever is between them; what nobody says is told.
#include <gst/video/video.h>

#include <vartml/postprocess.h>
#include <vartml/preprocess.h>

#include "gst/gstvartmldecode.h"
#include "gst/support/picture_info.h"
#include "tests/support/gst_infer_harness.h"

namespace {

using namespace vartml::test;

constexpr const char* caps_text = "video/x-raw,format=RGB,width=40,height=24,framerate=30/1";
constexpr gsize frame_bytes = 40 * 3 * 24;

GstBuffer* colourful_frame() {
    GstBuffer* buffer = gst_buffer_new_allocate(nullptr, frame_bytes, nullptr);
    GstMapInfo map;
    gst_buffer_map(buffer, &map, GST_MAP_WRITE);
    for (gsize i = 0; i < map.size; ++i) map.data[i] = guint8(i * 37 % 251);
    gst_buffer_unmap(buffer, &map);
    GST_BUFFER_PTS(buffer) = 0;
    return buffer;
}

// The device tensor that these options make of the frame.
std::vector<uint8_t> tensor_of(const vartml::PreprocessOptions& options) {
    GstCaps* caps = gst_caps_from_string(caps_text);
    const auto format = vartml::gst::frame_format(caps);
    gst_caps_unref(caps);
    const auto input = fake_input();
    const auto preprocessor =
        vartml::Preprocessor::create(format->picture, {}, input.cpu, *input.hw, options);
    if (!preprocessor) {
        ADD_FAILURE() << preprocessor.error().message;
        return {};
    }
    std::vector<uint8_t> tensor(input.hw->size_bytes);
    GstBuffer* frame = colourful_frame();
    {
        const vartml::gst::MappedFrame mapped(*format, frame);
        preprocessor->run(mapped.picture(), tensor.data());
    }
    gst_buffer_unref(frame);
    return tensor;
}
std::vector<uint8_t> tensor_of(const char* family) {
    return tensor_of(vartml::find_decoder_family(family)->input);
}

struct Ran {
    std::vector<uint8_t> tensor;        // what the model got
    std::vector<std::string> warnings;  // texts of vartmlinfer
    std::string error;                  // of vartmlinfer
};

// One frame through "appsrc ! vartmlinfer PROPERTIES ! DOWNSTREAM".
Ran run(const std::string& downstream, const std::string& properties = "") {
    GST_ELEMENT_REGISTER(vartmlinfer, nullptr);
    GST_ELEMENT_REGISTER(vartmldecode, nullptr);
    const std::string line =
        std::string("fakesrc num-buffers=1 name=src signal-handoffs=true sizetype=fixed sizemax=") +
        std::to_string(frame_bytes) + " ! capsfilter caps=\"" + caps_text +
        "\" ! vartmlinfer name=infer on-late=block model=" + model_file() + " " + properties +
        " ! " + downstream;
    GError* parse_error = nullptr;
    GstElement* pipeline = gst_parse_launch(line.c_str(), &parse_error);
    EXPECT_FALSE(parse_error) << parse_error->message;
    GstElement* source = gst_bin_get_by_name(GST_BIN(pipeline), "src");
    g_object_set(source, "format", GST_FORMAT_TIME, nullptr);
    const auto fill = +[](GstElement*, GstBuffer* buffer, GstPad*, gpointer) {
        GstBuffer* frame = colourful_frame();
        GstMapInfo map;
        gst_buffer_map(frame, &map, GST_MAP_READ);
        gst_buffer_fill(buffer, 0, map.data, map.size);
        gst_buffer_unmap(frame, &map);
        gst_buffer_unref(frame);
        GST_BUFFER_PTS(buffer) = 0;
    };
    g_signal_connect(source, "handoff", G_CALLBACK(fill), nullptr);
    gst_object_unref(source);
    GstBus* bus = gst_element_get_bus(pipeline);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    Ran ran;
    while (true) {
        GstMessage* message = gst_bus_timed_pop_filtered(
            bus, 20 * GST_SECOND,
            GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR | GST_MESSAGE_WARNING));
        if (!message) {
            ADD_FAILURE() << "no end of: " << line;
            break;
        }
        const GstMessageType type = GST_MESSAGE_TYPE(message);
        GError* error = nullptr;
        if (type == GST_MESSAGE_WARNING) gst_message_parse_warning(message, &error, nullptr);
        if (type == GST_MESSAGE_ERROR) gst_message_parse_error(message, &error, nullptr);
        const bool ours = std::string(GST_OBJECT_NAME(GST_MESSAGE_SRC(message))) == "infer";
        if (ours && type == GST_MESSAGE_WARNING) ran.warnings.emplace_back(error->message);
        if (ours && type == GST_MESSAGE_ERROR) ran.error = error->message;
        g_clear_error(&error);
        gst_message_unref(message);
        if (type != GST_MESSAGE_WARNING) break;
    }
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(bus);
    gst_object_unref(pipeline);
    ran.tensor = fake_model().last_input;
    return ran;
}

class Decoders : public testing::Test {
protected:
    void SetUp() override { reset_fake_model(); }
};

TEST_F(Decoders, SayWhatThePixelsAre) {
    // The fake model gives [1,4]: none of these fits, so that only the property can have said it.
    for (const char* family : {"yolox", "ultraface", "yolo-v8"}) {
        const std::string decode = std::string("vartmldecode decoder=") + family;
        for (const std::string& downstream :
             {decode + " ! fakesink", "queue ! identity ! " + decode + " ! queue ! fakesink",
              "tee name=t ! queue ! fakesink t. ! queue ! " + decode + " ! fakesink"}) {
            reset_fake_model();
            const Ran ran = run(downstream);
            EXPECT_EQ(ran.tensor, tensor_of(family)) << downstream;
            EXPECT_TRUE(ran.warnings.empty()) << ran.warnings.front();
        }
    }
}

TEST_F(Decoders, ThatChooseByShapeAreGuessedAlike) {
    const Ran ran = run("queue ! vartmldecode ! fakesink");
    EXPECT_EQ(ran.tensor, tensor_of("classify"));
    ASSERT_EQ(ran.warnings.size(), 1u);
    for (const char* word : {"pictures are fed as rgb, crop 0.875, mean 123.675",
                             "preprocess=", "section [images]", "most models of decoder classify"})
        EXPECT_NE(ran.warnings[0].find(word), std::string::npos) << ran.warnings[0];
}

TEST_F(Decoders, AreNotNeededToKnowTheCommonChoice) {
    EXPECT_EQ(run("fakesink").tensor, tensor_of("classify"));
}

TEST_F(Decoders, LeaveTheSidecarAndThePropertyTheLastWord) {
    const char* said = "preprocess=\"channels=bgr mean=1 scale=0.5 resize=stretch\"";
    const Ran ran = run("vartmldecode ! fakesink", said);
    EXPECT_EQ(ran.tensor, tensor_of({.channels = vartml::ChannelOrder::bgr,
                                     .mean = {1, 1, 1},
                                     .scale = {0.5f, 0.5f, 0.5f},
                                     .crop_fraction = 0.875}));
    EXPECT_TRUE(ran.warnings.empty()) << ran.warnings.front();
}

TEST_F(Decoders, BringTheirOwnSidecar) {
    const TempDir folder;
    spill(folder / "own.modelinfo",
          "[modelinfo]\nversion=1.0\nx-vartml-decoder=yolox\n[images]\ndir=input\n"
          "x-vartml-mean=7\n");
    const Ran ran =
        run("vartmldecode modelinfo-file=" + (folder / "own.modelinfo") + " ! fakesink");
    vartml::PreprocessOptions options = vartml::find_decoder_family("yolox")->input;
    options.mean = {7, 7, 7};
    EXPECT_EQ(ran.tensor, tensor_of(options));
    EXPECT_TRUE(ran.warnings.empty()) << ran.warnings.front();
}

TEST_F(Decoders, ThatContradictEachOtherAreRefused) {
    const auto tee = [](const char* a, const char* b) {
        return std::string("tee name=t ! queue ! vartmldecode name=one decoder=") + a +
               " ! fakesink t. ! queue ! vartmldecode name=two decoder=" + b + " ! fakesink";
    };
    const Ran ran = run(tee("yolox", "yolo-v8"));
    for (const char* word : {"'one' takes yolox", "'two' takes yolo-v8", "one tensor for both"})
        EXPECT_NE(ran.error.find(word), std::string::npos) << ran.error;
    // Two families of the same pixels are no contradiction.
    reset_fake_model();
    EXPECT_EQ(run(tee("yolo-v5", "yolo-v8")).tensor, tensor_of("yolo-v8"));
}

TEST_F(Decoders, BehindOneThatTakesTheTensorsAreNotAsked) {
    const Ran ran = run("vartmldecode decoder=yolox ! vartmldecode decoder=yolo-v8 ! fakesink");
    EXPECT_EQ(ran.tensor, tensor_of("yolox"));
}

TEST_F(Decoders, BehindAnotherModelDecodeThatOne) {
    const Ran ran =
        run("vartmldecode decoder=yolox keep-tensors=true ! vartmlinfer model=" + model_file() +
            " ! vartmldecode decoder=yolo-v8 ! fakesink");
    EXPECT_EQ(ran.error, "");
    EXPECT_TRUE(ran.warnings.empty()) << ran.warnings.front();
    EXPECT_EQ(ran.tensor, tensor_of("yolox"));
}

}  // namespace
