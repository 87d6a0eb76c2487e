// SPDX-License-Identifier: Apache-2.0
// Tiles of a frame: an inference each, that knows its place; batches, carried results, what is
// refused.
#include "tests/support/gst_infer_harness.h"

namespace {

using namespace vartml::test;
using vartml::gst::get_inference;
using vartml::gst::Inference;
using vartml::gst::InferenceStatus;

class InferTiles : public testing::Test {
protected:
    void SetUp() override { reset_fake_model(); }
    void TearDown() override { EXPECT_EQ(fake_model().live_runners, 0u); }

    static GstElement* tiles_infer(const char* grid = "2x1", bool whole = false,
                                   double overlap = 0) {
        GstElement* element = make_infer();
        gst_util_set_object_arg(G_OBJECT(element), "inference-region", "tiles");
        g_object_set(element, "tile-grid", grid, "tile-overlap", overlap, "tile-whole-frame",
                     gboolean(whole), nullptr);
        return element;
    }
    // "x,y wxh; " of all inferences on a frame, which it takes.
    static std::string regions_of(GstBuffer* buffer) {
        std::string all;
        for (unsigned i = 0; const Inference* one = get_inference(buffer, i); ++i) {
            EXPECT_EQ(one->tile, i);
            all += std::to_string(one->region_x) + "," + std::to_string(one->region_y) + " " +
                   std::to_string(one->region_width) + "x" + std::to_string(one->region_height) +
                   "; ";
        }
        gst_buffer_unref(buffer);
        return all;
    }
};

TEST_F(InferTiles, AreTheRegionsOfEveryFrame) {
    struct Case {
        const char* grid;
        bool whole;
        double overlap;
        const char* want;
    } cases[] = {
        {"2x1", false, 0, "0,0 16x24; 16,0 16x24; "},
        {"1x2", false, 0.5, "0,0 32x16; 0,8 32x16; "},
        {"2x1", true, 0.2, "0,0 32x24; 0,0 18x24; 14,0 18x24; "},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.grid);
        InferHarness t(tiles_infer(c.grid, c.whole, c.overlap));
        for (guint64 n = 0; n < 3; ++n) {
            ASSERT_EQ(t.push(n), GST_FLOW_OK);
            EXPECT_EQ(regions_of(t.pull()), c.want);
        }
        EXPECT_EQ(t.stat("frames"), 3u);
        EXPECT_EQ(t.stat("inferences"), 3u * (2 + c.whole));
        EXPECT_EQ(t.stat("conversions"), 3u * (2 + c.whole));
    }
}

TEST_F(InferTiles, MapIntoTheFrameWhereTheyLie) {
    InferHarness t(tiles_infer());
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    GstBuffer* out = t.pull();
    for (unsigned i = 0; i < 2; ++i) {
        const Inference* tile = get_inference(out, i);
        ASSERT_NE(tile, nullptr);
        EXPECT_EQ(tile->status, InferenceStatus::inferred);
        EXPECT_EQ(tile->tiles, 2u);
        EXPECT_EQ(tile->region_od, -1);
        // 16x12 of the model onto 16x24.
        EXPECT_DOUBLE_EQ(tile->to_frame.a, 1);
        EXPECT_DOUBLE_EQ(tile->to_frame.c, 16 * i);
        EXPECT_DOUBLE_EQ(tile->to_frame.e, 2);
    }
    EXPECT_NE(get_inference(out, 0)->data[0], get_inference(out, 1)->data[0]);
    gst_buffer_unref(out);
}

TEST_F(InferTiles, ReadTheirOwnPixels) {
    InferHarness t(tiles_infer());
    GstBuffer* frame = InferHarness::frame(0);
    GstMapInfo map;
    gst_buffer_map(frame, &map, GST_MAP_WRITE);
    for (gsize i = 0; i < map.size; ++i) map.data[i] = i % 32 < 16 ? 10 : 200;
    gst_buffer_unmap(frame, &map);
    ASSERT_EQ(gst_harness_push(t.h, frame), GST_FLOW_OK);
    t.pull_out();
    // The last run is of the right tile. 200 in bf16.
    const std::vector<uint8_t>& tensor = fake_model().last_input;
    for (size_t pixel = 0; pixel < tensor.size() / 8; ++pixel)
        ASSERT_EQ(unsigned(tensor[8 * pixel + 1]) << 8 | tensor[8 * pixel], 0x4348u) << pixel;
}

TEST_F(InferTiles, OfSeveralFramesShareBatches) {
    fake_model().batch = 4;
    GstElement* element = tiles_infer("2x1", true);
    g_object_set(element, "async-depth", 4, "batch-timeout", 60'000, nullptr);
    InferHarness t(element);
    for (guint64 n = 0; n < 4; ++n) ASSERT_EQ(t.push(n), GST_FLOW_OK);
    for (guint64 n = 0; n < 4; ++n) EXPECT_EQ(t.pull_out().offset, n);
    EXPECT_EQ(fake_model().fills, (std::vector<size_t>{4, 4, 4}));
}

// Runs are of tiles A0 A1 A2 B0, B1 B2 C0 C1 and C2 D0 D1 D2 of the frames A to D.
TEST_F(InferTiles, OfSeveralFramesThatARunFailedAreToldOnce) {
    fake_model().batch = 4;
    fake_model().failing = {1};
    GstElement* element = tiles_infer("2x1", true);
    g_object_set(element, "async-depth", 4, "batch-timeout", 60'000, nullptr);
    InferHarness t(element);
    for (guint64 n = 0; n < 4; ++n) ASSERT_EQ(t.push(n), GST_FLOW_OK);
    for (const auto want : {InferenceStatus::inferred, InferenceStatus::failed,
                            InferenceStatus::failed, InferenceStatus::inferred})
        EXPECT_EQ(t.pull_out().status, want);
    EXPECT_EQ(t.messages(GST_MESSAGE_WARNING), 1u);
}

TEST_F(InferTiles, AFailedTileIsAFailedFrame) {
    fake_model().failing = {1};
    InferHarness t(tiles_infer());
    for (guint64 n = 0; n < 2; ++n) ASSERT_EQ(t.push(n), GST_FLOW_OK);
    EXPECT_EQ(t.pull_out().status, InferenceStatus::failed);
    EXPECT_EQ(t.pull_out().status, InferenceStatus::inferred);
    EXPECT_EQ(t.stat("failed"), 1u);
}

// Unlike those of regions of interest, results of tiles are of the whole frame.
TEST_F(InferTiles, AreCarriedTogetherByFramesThatKeepTheirRate) {
    GstElement* element = tiles_infer("2x1", true);
    gst_util_set_object_arg(G_OBJECT(element), "keep-rate", "yes");
    gst_util_set_object_arg(G_OBJECT(element), "on-late", "auto");
    g_object_set(element, "latency", guint64(10 * GST_SECOND), nullptr);
    InferHarness t(element);
    ASSERT_EQ(t.push(0), GST_FLOW_OK);
    EXPECT_EQ(t.pull_out().status, InferenceStatus::inferred);
    GstBuffer* damaged = InferHarness::frame(1);
    GST_BUFFER_FLAG_SET(damaged, GST_BUFFER_FLAG_CORRUPTED);
    ASSERT_EQ(gst_harness_push(t.h, damaged), GST_FLOW_OK);
    GstBuffer* out = t.pull();
    for (unsigned i = 0; i < 3; ++i) {
        const Inference* tile = get_inference(out, i);
        ASSERT_NE(tile, nullptr) << i;
        EXPECT_EQ(tile->status, InferenceStatus::carried);
        EXPECT_EQ(tile->fate, InferenceStatus::skipped_flag);
        EXPECT_EQ(tile->tile, i);
        EXPECT_EQ(tile->result_seq, 0u);
    }
    EXPECT_EQ(get_inference(out, 3), nullptr);
    gst_buffer_unref(out);
    EXPECT_EQ(t.stat("carried"), 1u);
}

// The next error's property and sentence.
std::string error_of(GstBus* bus) {
    GstMessage* message = gst_bus_timed_pop_filtered(bus, 10 * GST_SECOND, GST_MESSAGE_ERROR);
    if (!message) return "no error";
    GError* error = nullptr;
    const GstStructure* details = nullptr;
    gst_message_parse_error(message, &error, nullptr);
    gst_message_parse_error_details(message, &details);
    const std::string text =
        std::string(gst_structure_get_string(details, "property")) + ": " + error->message;
    g_error_free(error);
    gst_message_unref(message);
    return text;
}

TEST_F(InferTiles, AreRefusedAtTheStartInOneSentence) {
    struct Case {
        const char *property, *value, *want;
    } cases[] = {
        {"tile-grid", "3",
         "tile-grid: Could not load the model: property 'tile-grid': '3' is no grid of tiles: "
         "expected COLUMNSxROWS of 2 to 256 tiles, such as 3x2"},
        {"input-is-tensor", "yes",
         "input-is-tensor: Could not load the model: property 'input-is-tensor' is yes and "
         "'inference-region' is tiles, but a region of a frame is not the tensor; set "
         "input-is-tensor=no, or inference-region=full-frame"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.want);
        GstElement* element = tiles_infer();
        gst_util_set_object_arg(G_OBJECT(element), c.property, c.value);
        GstBus* bus = gst_bus_new();
        gst_element_set_bus(element, bus);
        EXPECT_EQ(gst_element_set_state(element, GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
        EXPECT_EQ(error_of(bus), c.want);
        gst_element_set_state(element, GST_STATE_NULL);
        gst_element_set_bus(element, nullptr);
        gst_object_unref(bus);
        gst_object_unref(element);
    }
}

TEST_F(InferTiles, OfFewPixelsAreRefusedInOneSentence) {
    InferHarness t(tiles_infer("4x1"));
    EXPECT_EQ(t.push(0), GST_FLOW_ERROR);
    EXPECT_EQ(error_of(t.bus),
              "tile-grid: Could not prepare the pre-processing: property 'tile-grid': 4x1 tiles of "
              "frames of 32x24 would be of 8x24 pixels, expected sides of at least 16");
}

}  // namespace
