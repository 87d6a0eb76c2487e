// SPDX-License-Identifier: Apache-2.0
// What the elements log, and at which level: the model, caps, plan and settings once at INFO,
// decisions at DEBUG, each frame at LOG, each region and result at TRACE.
#include <gst/gst.h>
#include <gst/video/video.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/gst_log.h"
#include "tests/support/gst_main.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace {

using vartml::test::GstLog;
using vartml::test::TempDir;
using vartml::test::TinyOnnx;

constexpr unsigned frames = 3;

class LogLevels : public testing::Test {
protected:
    void SetUp() override {
        TinyOnnx m;
        m.input("images", {1, 3, 16, 16}).weights("w", {3, 3, 3, 3});
        m.node("Conv", {"images", "w"}, {"c"}, {{"pads", TinyOnnx::Ints{1, 1, 1, 1}}})
            .node("GlobalAveragePool", {"c"}, {"p"})
            .node("Flatten", {"p"}, {"scores"})
            .output("scores")
            .save(dir_ / "kitchen.onnx");
    }
    std::string infer(const std::string& properties = {}) const {
        return " ! vartmlinfer name=infer preprocess=\"mean=0 scale=1\" model=" +
               (dir_ / "kitchen.onnx") + " cache-dir=" + (dir_ / "cache") + " " + properties;
    }
    // Pictures through the line to its end.
    static void run(const std::string& line, GstPadProbeCallback on_frame = nullptr) {
        const std::string whole =
            "videotestsrc num-buffers=" + std::to_string(frames) +
            " ! video/x-raw,format=RGB,width=32,height=24 ! identity name=first" + line;
        GError* error = nullptr;
        GstElement* pipeline = gst_parse_launch(whole.c_str(), &error);
        ASSERT_TRUE(pipeline) << error->message;
        GstElement* first = gst_bin_get_by_name(GST_BIN(pipeline), "first");
        if (on_frame) {
            GstPad* pad = gst_element_get_static_pad(first, "src");
            gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, on_frame, nullptr, nullptr);
            gst_object_unref(pad);
        }
        gst_element_set_state(pipeline, GST_STATE_PLAYING);
        GstBus* bus = gst_element_get_bus(pipeline);
        GstMessage* message = gst_bus_timed_pop_filtered(
            bus, GST_CLOCK_TIME_NONE, GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
        EXPECT_EQ(GST_MESSAGE_TYPE(message), GST_MESSAGE_EOS);
        gst_message_unref(message);
        gst_element_set_state(pipeline, GST_STATE_NULL);
        gst_object_unref(first);
        gst_object_unref(bus);
        gst_object_unref(pipeline);
    }
    TempDir dir_;
};

struct Row {
    const char* why;
    GstDebugLevel level;
    std::vector<std::string> words;
    size_t lines;
};

TEST_F(LogLevels, InferTellsModelDeviceCapsAndPlanOnceAndEachFrame) {
    GstLog log;
    run(infer() + " ! fakesink");
    const Row rows[] = {
        {"model, device and nodes",
         GST_LEVEL_INFO,
         {"model 'kitchen'", "on softnpu", "nodes on the NPU", "decoder"},
         1},
        {"caps", GST_LEVEL_INFO, {"caps video/x-raw", "width=(int)32"}, 1},
        {"plan", GST_LEVEL_INFO, {"plan: 32x24 frames", "'images' of 16x16", "rgb, mean 0,0,0"}, 1},
        {"decision", GST_LEVEL_DEBUG, {"upstream is not live", "results stay"}, 1},
        {"frames", GST_LEVEL_LOG, {"frame ", "inferred", "pre ", "run ", "total "}, frames},
        {"the last frame", GST_LEVEL_LOG, {"frame 2: inferred"}, 1},
        {"no regions", GST_LEVEL_TRACE, {"region"}, 0},
    };
    for (const Row& row : rows)
        EXPECT_EQ(log.count("vartmlinfer", row.level, row.words), row.lines)
            << row.why << '\n'
            << log.of("vartmlinfer");
}

GstPadProbeReturn add_regions(GstPad*, GstPadProbeInfo* info, gpointer) {
    GstBuffer* buffer = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
    GST_PAD_PROBE_INFO_DATA(info) = buffer;
    gst_buffer_add_video_region_of_interest_meta(buffer, "cup", 0, 0, 16, 16);
    gst_buffer_add_video_region_of_interest_meta(buffer, "jug", 8, 4, 20, 20);
    return GST_PAD_PROBE_OK;
}

TEST_F(LogLevels, WarningsAreThereOnceInTheLogOfTheirElement) {
    GstLog log;
    run(" ! vartmlinfer model=" + (dir_ / "kitchen.onnx") + " cache-dir=" + (dir_ / "cache") +
        " ! vartmldecode decoder=classify ! fakesink");
    EXPECT_EQ(log.count("vartmlinfer", GST_LEVEL_WARNING,
                        {"Could not know how the model takes pictures", "nor sidecar"}),
              1u)
        << log.of("vartmlinfer");
}

TEST_F(LogLevels, InferTellsEachRegionAtTrace) {
    GstLog log;
    run(infer("inference-region=roi") + " ! fakesink", add_regions);
    EXPECT_EQ(log.count("vartmlinfer", GST_LEVEL_TRACE, {"region 0,0 16x16"}), frames)
        << log.of("vartmlinfer");
    EXPECT_EQ(log.count("vartmlinfer", GST_LEVEL_TRACE, {"region 8,4 20x20"}), frames);
    EXPECT_EQ(log.count("vartmlinfer", GST_LEVEL_LOG, {"region 0,0 16x16"}), 0u);
}

TEST_F(LogLevels, TheOthersTellTheirSettingsOnceAndEachFrame) {
    GstLog log;
    run(infer() + " ! vartmldecode decoder=classify top-k=2 ! vartmltrack max-lost=7" +
        " ! vartmloverlay draw=labels ! tee name=t ! queue ! join.sink_main" +
        " t. ! queue ! join.sink_meta" + " vartmlmetajoin name=join tolerance=5" +
        " ! vartmlpublish method=file location=" + (dir_ / "lines.json") + " every=2 ! fakesink");
    struct Element {
        const char* category;
        std::vector<std::string> settings;  // that are not as by default
        std::string frame;                  // what a line of a frame has
        size_t lines;
    };
    const Element elements[] = {
        {"vartmldecode", {"decoder=classify", "top-k=2"}, "1 inferences", frames},
        {"vartmltrack", {"max-lost=7"}, "tracks", frames},
        {"vartmloverlay", {"draw=labels"}, "draw", frames},
        {"vartmlmetajoin", {"tolerance=5"}, "metadata of 0:00:0", frames},
        {"vartmlpublish", {"method=file", "every=2"}, "inferences", 2},  // frames 0 and 2
    };
    for (const Element& e : elements) {
        SCOPED_TRACE(e.category + std::string("\n") + log.of(e.category));
        std::vector<std::string> settings = {"settings: "};
        settings.insert(settings.end(), e.settings.begin(), e.settings.end());
        EXPECT_EQ(log.count(e.category, GST_LEVEL_INFO, settings), 1u);
        EXPECT_EQ(log.count(e.category, GST_LEVEL_LOG, {e.frame}), e.lines);
    }
}

TEST_F(LogLevels, SettingsThatNobodyChangedAreNotListed) {
    GstLog log;
    run(" ! vartmltrack ! fakesink");
    EXPECT_EQ(log.count("vartmltrack", GST_LEVEL_INFO, {"settings: all as by default"}), 1u)
        << log.of("vartmltrack");
}

}  // namespace
