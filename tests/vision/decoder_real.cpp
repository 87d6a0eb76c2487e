// SPDX-License-Identifier: Apache-2.0
// Outputs of real models for real pictures (`shared/models`), against plain loops and against what
// is in the picture.
#include <gtest/gtest.h>

#include <set>

#include "tests/support/tensor_proto.h"
#include "tests/vision/head_tensors.h"

using namespace vartml;
using namespace vartml::test;

namespace {

// The reference tensor of an output; empty when the test data are absent.
RefTensor real_tensor(const std::string& model, int output) {
    const auto proto =
        read_tensor_proto(shared_folder() + "/models/" + model + "/test_data_set_0/output_" +
                          std::to_string(output) + ".pb");
    if (!proto || proto->dims.size() < 2) return {};
    RefTensor t{proto->floats(), 1, static_cast<size_t>(proto->dims.back()), false};
    if (proto->dims.size() == 3) t.positions = static_cast<size_t>(proto->dims[1]);
    return t;
}

#define SKIP_WITHOUT(tensor) \
    if ((tensor).data.empty()) GTEST_SKIP() << "shared/models is not there"

Decoded decode(std::vector<StoredTensor> tensors, const ModelInfo& info, uint32_t width,
               uint32_t height, const DecodeOptions& options, std::string_view family) {
    std::vector<TensorInfo> infos;
    std::vector<OutputTensor> outputs;
    for (const StoredTensor& tensor : tensors) infos.push_back(tensor.info);
    for (const StoredTensor& tensor : tensors) outputs.push_back(tensor.output());
    Decoded decoded;
    auto decoder = Decoder::create(info, infos, width, height, options);
    EXPECT_TRUE(decoder) << decoder.error().message;
    EXPECT_EQ(decoder->family(), family);
    EXPECT_TRUE(decoder->decode(outputs, {}, width, height, decoded));
    return decoded;
}

void expect_equal(const std::vector<Detection>& found, std::vector<RefBox> want, uint32_t width,
                  uint32_t height) {
    std::erase_if(want, [&](RefBox& box) {
        box.x0 = std::clamp<double>(box.x0, 0, width),
        box.x1 = std::clamp<double>(box.x1, 0, width);
        box.y0 = std::clamp<double>(box.y0, 0, height),
        box.y1 = std::clamp<double>(box.y1, 0, height);
        return box.x0 >= box.x1 || box.y0 >= box.y1;
    });
    ASSERT_EQ(found.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_EQ(found[i].class_id, want[i].class_id);
        EXPECT_NEAR(found[i].score, want[i].score, 1e-5);
        EXPECT_GE(ref_iou({found[i].x0, found[i].y0, found[i].x1, found[i].y1, 0, 0}, want[i]),
                  0.999);
    }
}

TEST(RealYolox, FindsDogBicycleAndTruck) {
    const RefTensor t = real_tensor("yolox_nano_416", 0);
    SKIP_WITHOUT(t);
    ModelInfo info;
    auto labels = read_labels(shared_folder() + "/models/images/coco.names");
    ASSERT_TRUE(labels) << labels.error().message;
    info.labels = *labels;
    const Decoded decoded = decode({stored_cpu(t, "output")}, info, 416, 416, {}, "yolox");
    expect_equal(decoded.detections, ref_nms(ref_yolox(t, 416, 416, 0.3f), 0.45, true), 416, 416);
    std::set<std::string> seen;
    for (const Detection& d : decoded.detections)
        seen.insert(info.labels[static_cast<size_t>(d.class_id)]);
    EXPECT_TRUE(seen.count("dog"));
    EXPECT_TRUE(seen.count("bicycle"));
    EXPECT_TRUE(seen.count("truck") || seen.count("car"));
    EXPECT_LE(decoded.detections.size(), 6u);
}

TEST(RealYolox, FindsTheSameFromTheNpusView) {
    RefTensor t = real_tensor("yolox_nano_416", 0);
    SKIP_WITHOUT(t);
    const auto hw =
        decode({stored_hw(t, "output", DataType::bf16)}, {}, 416, 416, {}, "yolox").detections;
    const auto cpu = decode({stored_cpu(t, "output")}, {}, 416, 416, {}, "yolox").detections;
    ASSERT_EQ(hw.size(), cpu.size());
    for (size_t i = 0; i < hw.size(); ++i) EXPECT_EQ(std::memcmp(&hw[i], &cpu[i], sizeof hw[i]), 0);
}

TEST(RealUltraFace, FindsNineteenFaces) {
    const RefTensor scores = real_tensor("ultraface_rfb_320", 0),
                    boxes = real_tensor("ultraface_rfb_320", 1);
    SKIP_WITHOUT(scores);
    const Decoded decoded = decode({stored_cpu(scores, "scores"), stored_cpu(boxes, "boxes")}, {},
                                   320, 240, {}, "ultraface");
    EXPECT_EQ(decoded.detections.size(), 19u);  // shared/models/SOURCES.md
    expect_equal(decoded.detections,
                 ref_nms(ref_ultraface(scores, boxes, 320, 240, 0.7f), 0.3, true), 320, 240);
}

TEST(RealLightperson, IsYoloxWithOneClass) {
    const RefTensor t = real_tensor("lightperson", 0);
    SKIP_WITHOUT(t);
    for (const double score : {0.3, 0.02}) {
        const Decoded decoded =
            decode({stored_cpu(t, "output")}, {}, 192, 192, {.score_threshold = score}, "yolox");
        expect_equal(decoded.detections,
                     ref_nms(ref_yolox(t, 192, 192, static_cast<float>(score)), 0.45, true), 192,
                     192);
    }
}

TEST(RealDeim, GivesItsOwnBoxesBack) {
    const auto labels = read_tensor_proto(shared_folder() +
                                          "/models/deimv2_femto_coco/test_data_set_0/output_0.pb");
    const RefTensor boxes = real_tensor("deimv2_femto_coco", 1),
                    scores = real_tensor("deimv2_femto_coco", 2);
    SKIP_WITHOUT(scores);
    StoredTensor classes{{}, labels->raw};
    classes.info.name = "labels";
    classes.info.cpu = make_view(DataType::int64, Layout::GENERIC, {1, 300}, {0, 1});
    StoredTensor score_list = stored_cpu(scores, "scores");
    score_list.info.cpu = make_view(DataType::float32, Layout::GENERIC, {1, 300}, {0, 1});
    const StoredTensor tensors[] = {classes, stored_cpu(boxes, "boxes"), score_list};
    const TensorInfo infos[] = {tensors[0].info, tensors[1].info, tensors[2].info};
    ModelInfo info;
    info.inputs.resize(1);
    info.inputs[0].feed = "frame-size";
    auto decoder = Decoder::create(info, infos, 416, 416, {});
    ASSERT_TRUE(decoder) << decoder.error().message;
    EXPECT_EQ(decoder->family(), "detr");
    const OutputTensor outputs[] = {tensors[0].output(), tensors[1].output(), tensors[2].output()};
    Decoded decoded;
    // The picture was 810x1080 (input_1.pb), stretched to 416x416; drawn at half size the boxes
    // halve.
    for (const double scale : {1., 0.5}) {
        const auto frame_width = static_cast<uint32_t>(810 * scale),
                   frame_height = static_cast<uint32_t>(1080 * scale);
        const Affine map{.a = frame_width / 416., .e = frame_height / 416.};
        ASSERT_TRUE(decoder->decode(outputs, map, frame_width, frame_height, decoded, 810, 1080));
        std::vector<RefBox> want;
        for (size_t i = 0; i < 300; ++i) {
            int64_t class_id = 0;
            std::memcpy(&class_id, &labels->raw[8 * i], 8);
            const float* box = &boxes.data[4 * i];
            if (scores.data[i] < 0.4f) continue;
            want.push_back({box[0] * scale, box[1] * scale, box[2] * scale, box[3] * scale,
                            scores.data[i], static_cast<int>(class_id)});
        }
        EXPECT_GT(want.size(), 3u);
        expect_equal(decoded.detections, want, frame_width, frame_height);
    }
}

TEST(RealShufflenet, SaysGoldfish) {
    const RefTensor t = real_tensor("shufflenet_v2_int8", 0);
    SKIP_WITHOUT(t);
    StoredTensor tensor = stored_cpu(t, "output");
    tensor.info.cpu = make_view(DataType::float32, Layout::GENERIC, {1, 1000}, {0, 1});
    ModelInfo info;
    info.activation = "softmax";
    const Decoded decoded = decode({tensor}, info, 224, 224, {}, "classify");
    ASSERT_EQ(decoded.classes.size(), 1u);
    EXPECT_EQ(decoded.classes[0].class_id, 1);  // ImageNet: goldfish
    EXPECT_GT(decoded.classes[0].score, 0.5f);
}

}  // namespace
