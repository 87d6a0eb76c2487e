// SPDX-License-Identifier: Apache-2.0
// The order of the columns of final boxes: published, told by the sidecar, told by a tensor's name.
#include "lib/vision/box_columns.h"

#include <gtest/gtest.h>

#include "tests/vision/map_tensors.h"

using namespace vartml;
using namespace vartml::test;

namespace {

struct Case {
    const char* why;
    const char* tensor;
    const char* columns;  // of the sidecar
    std::vector<float> row;
};
// Each row says: class 2, score 0.75, corners 10, 20, 30, 50.
const Case cases[] = {
    {"v10", "output0", "", {10, 20, 30, 50, 0.75f, 2}},
    {"v7", "output", "", {0, 10, 20, 30, 50, 2, 0.75f}},
    {"told by the name", "batchno_classid_score_x1y1x2y2", "", {0, 2, 0.75f, 10, 20, 30, 50}},
    {"y first", "batchno_classid_y1x1y2x2_score", "", {0, 2, 20, 10, 50, 30, 0.75f}},
    {"centre and size", "output", "cxcywh,score,class", {20, 35, 20, 30, 0.75f, 2}},
    {"turned by nothing", "output", "cxcywh,score,class,angle", {20, 35, 20, 30, 0.75f, 2, 0}},
    {"told by the sidecar", "output", "score,class,x0y0x1y1", {0.75f, 2, 10, 20, 30, 50}},
    {"the sidecar wins over the name",
     "batchno_classid_score_x1y1x2y2",
     "batch,score,class,x0y0x1y1",
     {0, 0.75f, 2, 10, 20, 30, 50}},
};

TEST(BoxColumns, SayWhatARowHolds) {
    for (const Case& c : cases) {
        for (const bool batch : {true, false}) {
            constexpr size_t rows = 20;  // the others only fill the tensor
            std::vector<float> values(c.row);
            values.resize(rows * c.row.size());
            StoredTensor tensor;
            tensor.info.name = c.tensor;
            std::vector<uint32_t> shape{rows, static_cast<uint32_t>(c.row.size())};
            if (batch) shape.insert(shape.begin(), 1);
            tensor.info.cpu =
                make_view(DataType::float32, batch ? Layout::NHW : Layout::GENERIC, shape);
            tensor.bytes.resize(values.size() * sizeof(float));
            std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
            ModelInfo info;
            info.columns = c.columns;
            const Decoded decoded = decode_tensors({tensor}, info, 100, 100);
            ASSERT_EQ(decoded.detections.size(), 1u) << c.why;
            const Detection& d = decoded.detections[0];
            EXPECT_EQ(d.class_id, 2) << c.why;
            EXPECT_EQ(d.score, 0.75f) << c.why;
            EXPECT_EQ(d.x0, 10) << c.why;
            EXPECT_EQ(d.y0, 20) << c.why;
            EXPECT_EQ(d.x1, 30) << c.why;
            EXPECT_EQ(d.y1, 50) << c.why;
        }
    }
}

// Turned boxes that the model selected: [1,N,7], as YOLO v7 has it.
StoredTensor turned_rows() {
    StoredTensor tensor;
    tensor.info.name = "output0";
    tensor.info.cpu = make_view(DataType::float32, Layout::NHW, {1, 300, 7});
    std::vector<float> values{320, 300, 100, 50, 0.9f, 1, 0.5f};
    values.resize(300 * 7);
    tensor.bytes.resize(values.size() * sizeof(float));
    std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
    return tensor;
}

TEST(BoxColumns, TellOfTurnedBoxes) {
    ModelInfo info;
    info.columns = "cxcywh,score,class,angle";
    const Decoded decoded = decode_tensors({turned_rows()}, info, 640, 640);
    ASSERT_EQ(decoded.detections.size(), 1u);
    const Detection& d = decoded.detections[0];
    EXPECT_EQ(d.class_id, 1);
    EXPECT_EQ(d.score, 0.9f);
    EXPECT_NEAR(d.angle, 0.5, 1e-5);
    EXPECT_NEAR((d.x0 + d.x1) / 2, 320, 1e-3);
    EXPECT_NEAR(d.y1 - d.y0, 50, 1e-3);
}

TEST(BoxColumns, WithoutTheNumberOfAPictureAreDoubted) {
    const StoredTensor tensor = turned_rows();
    auto decoder = Decoder::create({}, {&tensor.info, 1}, 640, 640, {});
    ASSERT_TRUE(decoder) << decoder.error().message;
    const OutputTensor output = tensor.output();
    Decoded decoded;
    ASSERT_TRUE(decoder->decode({&output, 1}, {}, 640, 640, decoded));
    EXPECT_NE(decoder->doubt().find("cxcywh,score,class,angle"), std::string::npos)
        << decoder->doubt();
}

// PaddleDetection's [N,6] and, in another output, how many rows are valid.
TEST(BoxColumns, MayHaveACountBesideThem) {
    ModelInfo info;
    info.columns = "class,score,x0y0x1y1";
    for (const bool batch : {false, true}) {
        StoredTensor table, count;
        table.info.name = "multiclass_nms3_0.tmp_0";
        table.info.cpu = batch ? make_view(DataType::float32, Layout::NHW, {1, 100, 6})
                               : make_view(DataType::float32, Layout::GENERIC, {100, 6});
        std::vector<float> values{2, 0.75f, 10, 20, 30, 50, 1, 0.5f, 5, 5, 60, 60};
        values.resize(100 * 6, 0.9f);  // what is left of another frame
        table.bytes.resize(values.size() * sizeof(float));
        std::memcpy(table.bytes.data(), values.data(), table.bytes.size());
        count.info.name = "multiclass_nms3_0.tmp_2";
        count.info.cpu = make_view(DataType::int32, Layout::GENERIC, {1}, {0});
        count.bytes = {2, 0, 0, 0};
        for (const bool first : {false, true}) {
            const std::vector<StoredTensor> tensors =
                first ? std::vector{count, table} : std::vector{table, count};
            const TensorInfo infos[] = {tensors[0].info, tensors[1].info};
            for (const char* named : {"", "yolo-end2end"}) {
                const auto decoder = Decoder::create(info, infos, 640, 640, {.decoder = named});
                ASSERT_TRUE(decoder) << decoder.error().message;
                EXPECT_EQ(decoder->family(), "yolo-end2end");
            }
            const Decoded decoded = decode_tensors(tensors, info, 640, 640);
            ASSERT_EQ(decoded.detections.size(), 2u);
            EXPECT_EQ(decoded.detections[0].class_id, 2);
            EXPECT_EQ(decoded.detections[0].score, 0.75f);
            EXPECT_EQ(decoded.detections[0].y1, 50);
            EXPECT_EQ(decoded.detections[1].class_id, 1);
            // Without the columns nobody knows what a row is.
            EXPECT_FALSE(Decoder::create({}, infos, 640, 640, {}));
        }
    }
}

TEST(BoxColumns, ThatAreNotCompleteAreNone) {
    for (const char* wrong : {"", "output0", "score,class", "score,class,x0y0x1y1,x0y0x1y1",
                              "score,class,x0y0x1y1,angle", "score,class,cxcywh,angle,angle",
                              "score, class,x0y0x1y1"}) {
        EXPECT_FALSE(vision::parse_box_columns(wrong)) << wrong;
    }
}

TEST(BoxColumns, OfAnotherNumberThanTheTensorHasAreRefused) {
    ModelInfo info;
    info.columns = "score,class,x0y0x1y1";
    TensorInfo output;
    output.name = "output";
    output.cpu = make_view(DataType::float32, Layout::NHW, {1, 20, 7});
    const auto decoder = Decoder::create(info, {&output, 1}, 100, 100, {.decoder = "yolo-end2end"});
    ASSERT_FALSE(decoder);
    EXPECT_NE(decoder.error().message.find("[1,N,6]"), std::string::npos)
        << decoder.error().message;
}

}  // namespace
