// SPDX-License-Identifier: Apache-2.0
// What all families share: thresholds, classes, geometry, odd numbers.
#include <gtest/gtest.h>

#include <limits>

#include "tests/vision/head_tensors.h"

using namespace vartml;
using namespace vartml::test;

namespace {

constexpr Affine identity;

// A YOLO v8 head of a 64x64 input: 64 + 16 + 4 positions, `classes` classes, boxes written one by
// one.
struct SmallHead {
    RefTensor tensor;
    explicit SmallHead(size_t classes)
        : tensor{std::vector<float>(84 * (4 + classes)), 84, 4 + classes, true} {}
    void set(size_t position, std::vector<float> values) {
        for (size_t a = 0; a < values.size(); ++a) tensor.data[a * 84 + position] = values[a];
    }
    Decoded decode(const DecodeOptions& options = {}, const Affine& map = identity,
                   uint32_t width = 64, uint32_t height = 64, const ModelInfo& info = {}) {
        const StoredTensor stored = stored_cpu(tensor, "out");
        DecodeOptions named = options;
        named.decoder = "yolo-v8";
        auto decoder = Decoder::create(info, {&stored.info, 1}, 64, 64, named);
        EXPECT_TRUE(decoder) << (decoder ? "" : decoder.error().message);
        Decoded decoded;
        const OutputTensor output = stored.output();
        EXPECT_TRUE(decoder && decoder->decode({&output, 1}, map, width, height, decoded));
        return decoded;
    }
};

TEST(Decode, DropsAndCountsNumbersThatAreNotFinite) {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN(),
                    inf = std::numeric_limits<float>::infinity();
    SmallHead head(2);
    head.set(3, {10, 10, 8, 8, 0.9f, 0});
    head.set(10, {nan, 10, 8, 8, 0.9f, 0});
    head.set(11, {10, inf, 8, 8, 0.9f, 0});
    head.set(12, {10, 10, 8, 8, nan, 0.9f});
    head.set(13, {10, 10, 8, 8, 0, inf});
    head.set(14, {nan, nan, nan, nan, 0, 0});  // no candidate: nobody looks at its box
    const Decoded decoded = head.decode();
    EXPECT_EQ(decoded.detections.size(), 1u);
    EXPECT_EQ(decoded.not_finite, 4u);
}

TEST(Decode, BreaksTiesByLowerPosition) {
    SmallHead head(1);
    head.set(40, {30, 30, 20, 20, 0.8f});
    head.set(20, {32, 30, 20, 20, 0.8f});
    const Decoded decoded = head.decode();
    ASSERT_EQ(decoded.detections.size(), 1u);
    EXPECT_EQ(decoded.detections[0].x0, 22);  // of position 20
    EXPECT_EQ(decoded.suppressed, 1u);
}

TEST(Decode, SuppressesAboveTheThresholdOnly) {
    SmallHead head(1);  // two boxes of 20x20, 10 apart: 200 / 600
    head.set(0, {20, 30, 20, 20, 0.9f});
    head.set(1, {30, 30, 20, 20, 0.8f});
    EXPECT_EQ(head.decode({.iou_threshold = 0.34}).detections.size(), 2u);
    EXPECT_EQ(head.decode({.iou_threshold = 0.33}).detections.size(), 1u);
    EXPECT_EQ(head.decode({.iou_threshold = 0.33, .nms = Nms::off}).detections.size(), 2u);
}

TEST(Decode, FindsNothingInZeros) {
    SmallHead head(80);
    const Decoded decoded = head.decode();
    EXPECT_TRUE(decoded.detections.empty());
    EXPECT_EQ(decoded.suppressed, 0u);
}

TEST(Decode, EndsWithTenThousandCandidates) {
    const RefTensor t = random_head(10654, 84, true, 4, 1, centred_value, 1.0);  // 720x720
    const StoredTensor stored = stored_cpu(t, "out");
    auto decoder = Decoder::create({}, {&stored.info, 1}, 720, 720, {.score_threshold = 0.5});
    ASSERT_TRUE(decoder) << decoder.error().message;
    Decoded decoded;
    const OutputTensor output = stored.output();
    ASSERT_TRUE(decoder->decode({&output, 1}, identity, 720, 720, decoded));
    EXPECT_EQ(decoded.detections.size(), 100u);
}

TEST(Decode, MapsCornersOfALetterboxBackToTheFrame) {
    // A frame of 128x72 in a 64x64 input: scaled by 1/2 to 64x36, 14 rows of border above.
    constexpr Affine map{.a = 2, .b = 0, .c = 0, .d = 0, .e = 2, .f = -28};
    SmallHead head(1);
    head.set(0, {4, 18, 8, 8, 0.9f});   // top left corner of the frame
    head.set(1, {60, 46, 8, 8, 0.8f});  // bottom right corner
    head.set(2, {32, 5, 8, 6, 0.7f});   // in the border: nothing is left of it
    head.set(3, {32, 12, 8, 8, 0.6f});  // half in the border
    const Decoded decoded = head.decode({}, map, 128, 72);
    ASSERT_EQ(decoded.detections.size(), 3u);
    const float want[][4] = {{0, 0, 16, 16}, {112, 56, 128, 72}, {56, 0, 72, 4}};
    for (size_t i = 0; i < 3; ++i) {
        const Detection& d = decoded.detections[i];
        EXPECT_EQ(d.x0, want[i][0]);
        EXPECT_EQ(d.y0, want[i][1]);
        EXPECT_EQ(d.x1, want[i][2]);
        EXPECT_EQ(d.y1, want[i][3]);
    }
}

TEST(Decode, MapsThroughATurnOfTheFrame) {
    SmallHead head(1);
    head.set(0, {10, 20, 4, 8, 0.9f});
    const Decoded decoded = head.decode({}, {.a = 0, .b = -1, .c = 64, .d = 1, .e = 0, .f = 0});
    ASSERT_EQ(decoded.detections.size(), 1u);
    const Detection& d = decoded.detections[0];  // x = 64 - v, y = u
    EXPECT_EQ(d.x0, 40);
    EXPECT_EQ(d.x1, 48);
    EXPECT_EQ(d.y0, 8);
    EXPECT_EQ(d.y1, 12);
}

TEST(Decode, KeepsTheClassesAskedFor) {
    SmallHead head(3);
    for (size_t c = 0; c < 3; ++c) {
        std::vector<float> values{10 + 16 * static_cast<float>(c), 10, 8, 8, 0, 0, 0};
        values[4 + c] = 0.9f;
        head.set(c, values);
    }
    ModelInfo info;
    info.labels = {"cat", "dog", "0"};
    const auto kept = [&](std::vector<std::string> classes) {
        std::vector<int> ids;
        for (const Detection& d :
             head.decode({.classes = classes}, identity, 64, 64, info).detections) {
            ids.push_back(d.class_id);
        }
        return ids;
    };
    EXPECT_EQ(kept({}), (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(kept({"dog"}), std::vector<int>{1});
    EXPECT_EQ(kept({"2", "cat"}), (std::vector<int>{0, 2}));
    EXPECT_EQ(kept({"0"}), std::vector<int>{2});  // a label that is a number wins over the number
    const StoredTensor stored = stored_cpu(head.tensor, "out");
    const auto unknown = Decoder::create(info, {&stored.info, 1}, 64, 64,
                                         {.decoder = "yolo-v8", .classes = {"bird"}});
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(unknown.error().message.find("'bird'"), std::string::npos);
}

TEST(Decode, DropsTheBackgroundClass) {
    SmallHead head(2);
    head.set(0, {10, 10, 8, 8, 0.9f, 0});
    head.set(1, {40, 40, 8, 8, 0, 0.8f});
    ModelInfo info;
    info.labels = {"cat"};
    info.class_offset = -1;
    const Decoded decoded = head.decode({}, identity, 64, 64, info);
    ASSERT_EQ(decoded.detections.size(), 1u);
    EXPECT_EQ(decoded.detections[0].class_id, 0);
}

TEST(Decode, HoldsItsLimits) {
    SmallHead head(1);
    for (size_t i = 0; i < 8; ++i) {
        const auto k = static_cast<float>(i);
        head.set(i, {8 * k + 2, 8, 2 + k / 2, 4, 0.9f - 0.05f * k});
    }
    EXPECT_EQ(head.decode().detections.size(), 8u);
    EXPECT_EQ(head.decode({.max_detections = 3}).detections.size(), 3u);
    EXPECT_EQ(head.decode({.min_size = 4}).detections.size(), 4u);  // widths 2, 2.5 … 5.5
    EXPECT_EQ(head.decode({.score_threshold = 0.7}).detections.size(), 5u);
    ModelInfo info;
    info.score_threshold = 0.8;
    info.max_detections = 2;
    EXPECT_EQ(head.decode({}, identity, 64, 64, info).detections.size(), 2u);
    EXPECT_EQ(head.decode({.score_threshold = 0.1, .max_detections = 9}, identity, 64, 64, info)
                  .detections.size(),
              8u);
}

TEST(Decode, PutsTheSidecarsActivationBehindScores) {
    SmallHead head(2);
    for (size_t p = 0; p < 84; ++p) head.set(p, {10, 10, 8, 8, -9, -9});
    head.set(5, {10, 10, 8, 8, -9, 1.5f});   // sigmoid 0.8176
    head.set(6, {40, 10, 8, 8, -1.2f, -9});  // sigmoid 0.2315
    ModelInfo info;
    info.activation = "sigmoid";
    const Decoded decoded = head.decode({}, identity, 64, 64, info);
    ASSERT_EQ(decoded.detections.size(), 1u);
    EXPECT_NEAR(decoded.detections[0].score, 0.817574f, 1e-6);
}

TEST(Decode, RefusesTensorsOfAnotherModel) {
    const TensorInfo outputs[] = {output_of("a", {1, 84, 8400})};
    auto decoder = Decoder::create({}, outputs, 640, 640, {});
    ASSERT_TRUE(decoder);
    const TensorInfo other = output_of("a", {1, 84, 3549});
    const std::vector<float> data(84 * 3549);
    const OutputTensor tensor{data.data(), "a", &other.cpu, &other.cpu};
    Decoded decoded;
    EXPECT_FALSE(decoder->decode({&tensor, 1}, identity, 64, 64, decoded));
    EXPECT_FALSE(decoder->decode({}, identity, 64, 64, decoded));
}

}  // namespace
