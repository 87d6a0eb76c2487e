// SPDX-License-Identifier: Apache-2.0
// Frames that were inferred in tiles: one list of boxes, however many tiles show an object.
#include "tests/gst/decode_harness.h"

namespace {

using namespace decode_test;

// Tiles of 80x96 of a frame of 128x96, which share 32 columns; 64x64 of the model onto each.
Inference tile_of(const std::shared_ptr<const InferenceRecord>& record, unsigned tile) {
    Inference inference = inference_of(record);
    const int x = tile ? 48 : 0;
    inference.region_x = x;
    inference.region_width = 80;
    inference.region_height = 96;
    inference.to_frame = {.a = 1.25, .b = 0, .c = double(x), .d = 0, .e = 1.5, .f = 0};
    inference.tile = tile;
    inference.tiles = 2;
    return inference;
}

class DecodeTiles : public Decode {
protected:
    void TearDown() override {
        for (GstBuffer* one : data_) gst_buffer_unref(one);
        Decode::TearDown();
    }
    // A frame whose tiles have the boxes of these heads.
    GstBuffer* tiled(const std::vector<StoredTensor>& tensors, guint64 result_id = 0) {
        GstBuffer* buffer = frame();
        if (!record_) record_ = record_of({tensors[0]});
        for (unsigned i = 0; i < tensors.size(); ++i) {
            data_.push_back(data_buffer(tensors[i]));
            Inference inference = tile_of(record_, i);
            inference.data = {data_.back()};
            inference.result_id = result_id ? result_id + i : 0;
            EXPECT_TRUE(add_inference(buffer, inference, 100));
            add_tensor_meta(buffer, {tensors[i]}, {data_.back()});
        }
        return buffer;
    }
    std::shared_ptr<InferenceRecord> record_;
    std::vector<GstBuffer*> data_;
};

// In the frame: a cat in each tile, one that both show, a dog that the seam cuts in two.
const RefTensor left_boxes = head(2, {{8, 8, 8, 8, 0.9f, 0},         // 5,6 10x12
                                      {52, 16, 8, 8, 0.8f, 0},       // 60,18 10x12
                                      {48, 48, 32, 16, 0, 0.7f}});   // 40,60 40x24
const RefTensor right_boxes = head(2, {{56, 8, 8, 8, 0.6f, 0},       // 113,6 10x12
                                       {13.6f, 16, 8, 8, 0.5f, 0},   // 60,18 10x12
                                       {16, 48, 32, 16, 0, 0.4f}});  // 48,60 40x24

TEST_F(DecodeTiles, ReportsAnObjectOfSeveralTilesOnce) {
    open();
    GstBuffer* out = run(tiled({stored_cpu(left_boxes, "out"), stored_cpu(right_boxes, "out")}));
    ASSERT_NE(out, nullptr);
    EXPECT_EQ(boxes_of(out), (std::vector<Box>{{5, 6, 10, 12, 0.9f, "cat"},
                                               {60, 18, 10, 12, 0.8f, "cat"},
                                               {40, 60, 48, 24, 0.7f, "dog"},
                                               {113, 6, 10, 12, 0.6f, "cat"}}));
    EXPECT_EQ(tensor_metas(out), 0u);
    gst_buffer_unref(out);
    EXPECT_EQ(stat("boxes"), 4u);
    EXPECT_EQ(stat("suppressed"), 2u);
}

TEST_F(DecodeTiles, AllBoxesStayWithoutNms) {
    open();
    gst_util_set_object_arg(G_OBJECT(element()), "nms", "off");
    GstBuffer* out = run(tiled({stored_cpu(left_boxes, "out"), stored_cpu(right_boxes, "out")}));
    ASSERT_NE(out, nullptr);
    EXPECT_EQ(boxes_of(out).size(), 6u);
    gst_buffer_unref(out);
}

TEST_F(DecodeTiles, FollowAFrameThatWasScaled) {
    open("video/x-raw,format=GRAY8,width=256,height=192,framerate=30/1");
    GstBuffer* in = gst_buffer_new_allocate(nullptr, 256 * 192, nullptr);
    GstBuffer* small = tiled({stored_cpu(left_boxes, "out"), stored_cpu(right_boxes, "out")});
    for (unsigned i = 0; i < 2; ++i) {
        Inference inference = *get_inference(small, i);
        vartml::Affine& map = inference.to_frame;
        map.a *= 2, map.c *= 2, map.e *= 2;
        EXPECT_TRUE(add_inference(in, inference, 100));
    }
    gst_buffer_unref(small);
    GstBuffer* out = run(in);
    ASSERT_NE(out, nullptr);
    const auto boxes = boxes_of(out);
    ASSERT_EQ(boxes.size(), 4u);
    EXPECT_EQ(boxes[2], (Box{80, 120, 96, 48, 0.7f, "dog"}));
    gst_buffer_unref(out);
}

TEST_F(DecodeTiles, AreDecodedOnceHoweverManyFramesCarryThem) {
    open();
    for (int n = 0; n < 3; ++n) {
        GstBuffer* out =
            run(tiled({stored_cpu(left_boxes, "out"), stored_cpu(right_boxes, "out")}, 7));
        ASSERT_NE(out, nullptr);
        EXPECT_EQ(boxes_of(out).size(), 4u);
        gst_buffer_unref(out);
    }
    EXPECT_EQ(stat("reused"), 2u);
}

TEST_F(DecodeTiles, OfAClassifierAreRefused) {
    open();
    gst_util_set_object_arg(G_OBJECT(element()), "decoder", "classify");
    StoredTensor scores = stored_cpu(RefTensor{{0.1f, 0.9f}, 1, 2, false}, "out");
    scores.info.cpu = make_view(DataType::float32, Layout::NC, {1, 2});
    EXPECT_EQ(run(tiled({scores, scores})), nullptr);
    std::string text;
    EXPECT_TRUE(pop(GST_MESSAGE_ERROR, &text).starts_with("dec-tiles "));
    EXPECT_EQ(text,
              "Could not join the tiles of a frame: the frame was inferred in tiles, but decoder "
              "classify finds something of a whole picture and no boxes that could be joined; set "
              "inference-region=full-frame on vartmlinfer, or roi for parts of the frame");
}

}  // namespace
