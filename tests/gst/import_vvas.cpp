// SPDX-License-Identifier: Apache-2.0
// The lines that `vartml import-vvas` prints are lines that GStreamer takes.
#include <gst/gst.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <string>

#include "tests/support/gst_main.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"
#include "tests/tools/vvas_files.h"

namespace vartml {
namespace {

const std::string files[] = {test::vvas_resnet,        test::vvas_yolox,   test::vvas_second_level,
                             test::vvas_tensor_frames, test::vvas_by_type, test::vvas_dpu,
                             test::vvas_oldest};

std::string imported(const test::TempDir& dir, const std::string& text,
                     const std::string& model = "a model.rai") {
    test::spill(dir / "x.json", text);
    test::spill(dir / "names.txt", "cat\ndog\n");
    const std::string command = "cd '" + dir.path() + "' && '" + std::getenv("VARTML_PROGRAM") +
                                "' import-vvas x.json --model '" + model + "' >out.txt 2>/dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0);
    return test::slurp(dir / "out.txt");
}

TEST(ImportVvas, PrintsLinesThatParse) {
    for (const std::string& text : files) {
        test::TempDir dir;
        std::string line = imported(dir, text);
        ASSERT_TRUE(line.starts_with("gst-launch-1.0 ")) << line;
        line.erase(0, std::string("gst-launch-1.0 ").size());
        GError* error = nullptr;
        GstElement* pipeline =
            gst_parse_launch_full(line.c_str(), nullptr, GST_PARSE_FLAG_FATAL_ERRORS, &error);
        ASSERT_TRUE(pipeline) << line << ": " << error->message;
        gst_object_unref(pipeline);
    }
}

TEST(ImportVvas, PrintsRunnerOptionsThatTheElementReads) {
    test::TempDir dir;
    std::string line = imported(dir, test::vvas_yolox);
    line.erase(0, std::string("gst-launch-1.0 ").size());
    GstElement* pipeline = gst_parse_launch(line.c_str(), nullptr);
    ASSERT_TRUE(pipeline);
    GstIterator* found =
        gst_bin_iterate_all_by_element_factory_name(GST_BIN(pipeline), "vartmlinfer");
    GValue item = G_VALUE_INIT;
    ASSERT_EQ(gst_iterator_next(found, &item), GST_ITERATOR_OK) << line;
    gst_iterator_free(found);
    GObject* infer = G_OBJECT(g_value_get_object(&item));
    gchar* model = nullptr;
    GstStructure* options = nullptr;
    g_object_get(infer, "model", &model, "runner-options", &options, nullptr);
    EXPECT_STREQ(model, "a model.rai");
    ASSERT_TRUE(options);
    guint column = 0;
    gint bank = 0;
    gboolean sharing = TRUE;
    EXPECT_TRUE(gst_structure_get(options, "start_column", G_TYPE_UINT, &column, "cma_index",
                                  G_TYPE_INT, &bank, "aie_columns_sharing", G_TYPE_BOOLEAN,
                                  &sharing, nullptr));
    EXPECT_EQ(column, 8u);
    EXPECT_EQ(bank, 1);
    EXPECT_FALSE(sharing);
    EXPECT_STREQ(gst_structure_get_string(options, "config_json"), "/etc/vai/vitisai_config.json");
    g_free(model);
    gst_structure_free(options);
    g_value_unset(&item);
    gst_object_unref(pipeline);
}

TEST(ImportVvas, PrintsLinesThatRun) {
    test::TempDir dir;
    test::TinyOnnx m;
    m.input("images", {1, 3, 16, 16}).weights("w", {2, 3, 3, 3});
    m.node("Conv", {"images", "w"}, {"c"}, {{"pads", test::TinyOnnx::Ints{1, 1, 1, 1}}});
    m.node("GlobalAveragePool", {"c"}, {"scores"}).output("scores").save(dir / "a model.rai.onnx");
    std::string line = imported(dir, test::vvas_resnet, "a model.rai.onnx");
    // Without a screen, and not for ever.
    line = std::regex_replace(line, std::regex("^gst-launch-1.0 videotestsrc"),
                              "videotestsrc num-buffers=4");
    line = line.substr(0, line.find(" ! videoconvert")) + " ! fakesink";
    const std::string here = std::filesystem::current_path();
    std::filesystem::current_path(dir.path());
    GstElement* pipeline = gst_parse_launch(line.c_str(), nullptr);
    ASSERT_TRUE(pipeline) << line;
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    GstBus* bus = gst_element_get_bus(pipeline);
    std::string decoder;
    for (bool running = true; running;) {
        GstMessage* message = gst_bus_timed_pop(bus, GST_CLOCK_TIME_NONE);
        if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
            GError* error = nullptr;
            gst_message_parse_error(message, &error, nullptr);
            ADD_FAILURE() << line << ": " << error->message;
            g_error_free(error);
            running = false;
        }
        if (gst_message_has_name(message, "vartml-decoder-selected"))
            decoder = gst_structure_get_string(gst_message_get_structure(message), "decoder");
        running = running && GST_MESSAGE_TYPE(message) != GST_MESSAGE_EOS;
        gst_message_unref(message);
    }
    EXPECT_EQ(decoder, "classify");
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(bus);
    gst_object_unref(pipeline);
    std::filesystem::current_path(here);
}

}  // namespace
}  // namespace vartml
