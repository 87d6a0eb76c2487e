// SPDX-License-Identifier: Apache-2.0
// Raw maps of YOLO v3 and v5 against the published formulas.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/vision/map_tensors.h"

using namespace vartml;
using namespace vartml::test;

namespace {

constexpr uint32_t width = 320, height = 256;
constexpr float anchors[] = {10, 13, 16,  30,  33, 23,  30,  61,  62,
                             45, 59, 119, 116, 90, 156, 198, 373, 326};  // published

double sigmoid(double v) {
    return 1 / (1 + std::exp(-v));
}

struct RawCase {
    const char* why;
    const char* form;
    enum Shape { by_anchor, channels_first, channels_last, npu } shape;
    bool finished = false;  // the graph ends in the sigmoid
};
const RawCase raw_cases[] = {
    {"the published v5 export", "", RawCase::by_anchor},
    {"v5 before its last Reshape", "v5", RawCase::channels_first},
    {"v3", "v3", RawCase::channels_first},
    {"v3 of a framework with channels last", "v3", RawCase::channels_last},
    {"v5 in the NPU's view", "v5", RawCase::npu},
    {"v5 with its sigmoid, as for RKNN", "", RawCase::channels_first, true},
    {"v3 with its sigmoid", "v3", RawCase::channels_first, true},
};
class RawMaps : public testing::TestWithParam<RawCase> {};
TEST_P(RawMaps, DecodeAsTheFormulasSay) {
    const RawCase& c = GetParam();
    SCOPED_TRACE(c.why);
    constexpr size_t classes = 4, attributes = 5 + classes;
    ModelInfo info;
    info.num_classes = classes;
    info.anchors.assign(std::begin(anchors), std::end(anchors));
    info.box_form = c.form;
    std::vector<StoredTensor> tensors;
    std::vector<RefBox> boxes;
    unsigned seed = 1;
    for (const int stride : {8, 16, 32}) {
        const size_t w = width / static_cast<size_t>(stride),
                     h = height / static_cast<size_t>(stride);
        RefMap map = random_map(3 * attributes, h, w, seed++, -1, 1);
        std::mt19937 random(seed);
        for (size_t a = 0; a < 3; ++a) {
            for (size_t y = 0; y < h; ++y) {
                for (size_t x = 0; x < w; ++x)
                    map.at(a * attributes + 4, y, x) = random() % 40 ? -3.f : 1.5f;
            }
        }
        const std::string name = "out" + std::to_string(stride);
        RefMap kept = map;  // as floats alone: other views round what is compared with, too
        if (c.finished) {
            info.outputs.push_back({.name = name, .id = "", .role = "", .ends_in = "sigmoid"});
            for (float& v : kept.data) v = static_cast<float>(sigmoid(double(v)));
        }
        StoredTensor tensor = stored_map(c.finished ? kept : map, name,
                                         c.shape == RawCase::npu             ? MapView::hw_bf16
                                         : c.shape == RawCase::channels_last ? MapView::nhwc
                                                                             : MapView::nchw);
        if (c.shape == RawCase::by_anchor) {  // [1,A,h,w,5+C]
            tensor.info.cpu =
                make_view(DataType::float32, Layout::GENERIC,
                          {1, 3, static_cast<uint32_t>(h), static_cast<uint32_t>(w), attributes},
                          {0, 1, 2, 3, 4});
            size_t i = 0;
            for (size_t a = 0; a < 3; ++a) {
                for (size_t cell = 0; cell < h * w; ++cell) {
                    for (size_t k = 0; k < attributes; ++k, ++i) {
                        std::memcpy(&tensor.bytes[4 * i],
                                    &map.data[(a * attributes + k) * h * w + cell], 4);
                    }
                }
            }
        }
        tensors.insert(tensors.begin(), tensor);  // any order
        const size_t level = stride == 8 ? 0 : stride == 16 ? 1 : 2;
        for (size_t a = 0; a < 3; ++a) {
            const double aw = anchors[6 * level + 2 * a], ah = anchors[6 * level + 2 * a + 1];
            for (size_t y = 0; y < h; ++y) {
                for (size_t x = 0; x < w; ++x) {
                    const auto v = [&](size_t k) {
                        return double(map.at(a * attributes + k, y, x));
                    };
                    size_t best = 0;
                    for (size_t k = 1; k < classes; ++k) best = v(5 + k) > v(5 + best) ? k : best;
                    const double score = sigmoid(v(4)) * sigmoid(v(5 + best));
                    if (score < 0.25) continue;
                    double cx, cy, bw, bh;
                    if (std::string(c.form) == "v3") {
                        cx = (sigmoid(v(0)) + double(x)) * stride,
                        cy = (sigmoid(v(1)) + double(y)) * stride;
                        bw = std::exp(v(2)) * aw, bh = std::exp(v(3)) * ah;
                    } else {
                        cx = (2 * sigmoid(v(0)) - 0.5 + double(x)) * stride;
                        cy = (2 * sigmoid(v(1)) - 0.5 + double(y)) * stride;
                        bw = std::pow(2 * sigmoid(v(2)), 2) * aw,
                        bh = std::pow(2 * sigmoid(v(3)), 2) * ah;
                    }
                    boxes.push_back({cx - bw / 2, cy - bh / 2, cx + bw / 2, cy + bh / 2, score,
                                     static_cast<int>(best)});
                }
            }
        }
    }
    const Decoded decoded =
        decode_tensors(tensors, info, width, height, {.max_detections = 1000, .nms = Nms::off});
    std::ranges::stable_sort(boxes,
                             [](const RefBox& a, const RefBox& b) { return a.score > b.score; });
    std::erase_if(boxes, [](RefBox& b) {
        b.x0 = std::clamp<double>(b.x0, 0, width), b.x1 = std::clamp<double>(b.x1, 0, width);
        b.y0 = std::clamp<double>(b.y0, 0, height), b.y1 = std::clamp<double>(b.y1, 0, height);
        return b.x0 >= b.x1 || b.y0 >= b.y1;
    });
    EXPECT_GT(boxes.size(), 20u);
    ASSERT_EQ(decoded.detections.size(), boxes.size());
    for (const RefBox& want : boxes) {  // equal scores may change places
        const bool found = std::ranges::any_of(decoded.detections, [&](const Detection& d) {
            return d.class_id == want.class_id && std::abs(d.score - want.score) < 1e-5 &&
                   ref_iou({d.x0, d.y0, d.x1, d.y1, 0, 0}, want) > 0.999;
        });
        EXPECT_TRUE(found) << want.score;
    }
}
INSTANTIATE_TEST_SUITE_P(Table, RawMaps, testing::ValuesIn(raw_cases));

// As the tool exported until its version 6.1: the table, and the maps that it is made of.
TEST(RawMapsOfYoloV5, BesideTheirTableAreLeftAlone) {
    const auto zeros = [](const char* name, std::vector<uint32_t> shape) {
        StoredTensor tensor;
        tensor.info.name = name;
        const Layout layout = shape.size() == 3 ? Layout::NHW : Layout::GENERIC;
        tensor.info.cpu = make_view(DataType::float32, layout, std::move(shape));
        tensor.bytes.resize(tensor.info.cpu.size_bytes);
        return tensor;
    };
    std::vector<StoredTensor> tensors = {zeros("output", {1, 252, 7})};
    const float box[] = {20, 24, 16, 12, 0.9f, 0, 1};
    std::memcpy(&tensors[0].bytes[5 * sizeof box], box, sizeof box);
    for (const uint32_t side : {8u, 4u, 2u}) tensors.push_back(zeros("map", {1, 3, side, side, 7}));
    std::vector<TensorInfo> infos;
    std::vector<OutputTensor> outputs;
    for (const StoredTensor& tensor : tensors) infos.push_back(tensor.info);
    for (const StoredTensor& tensor : tensors) outputs.push_back(tensor.output());
    auto decoder = Decoder::create({}, infos, 64, 64, {.decoder = "yolo-v5"});
    ASSERT_TRUE(decoder) << decoder.error().message;
    Decoded decoded;
    ASSERT_TRUE(decoder->decode(outputs, {}, 64, 64, decoded));
    ASSERT_EQ(decoded.detections.size(), 1u);
    EXPECT_EQ(decoded.detections[0].class_id, 1);
    EXPECT_NEAR(decoded.detections[0].x0, 12, 1e-3);
}

// YOLO v8 before its last operators: 16 bins for each distance, logits, and perhaps points.
TEST(RawMapsOfYoloV8, DecodeAsTheFormulasSay) {
    constexpr size_t bins = 16, classes = 3;
    for (const size_t points : {0u, 5u}) {
        ModelInfo info;
        info.num_classes = classes;
        std::vector<StoredTensor> tensors;
        std::vector<RefBox> boxes;
        std::vector<double> first_point;
        unsigned seed = 1;
        for (const int stride : {8, 16, 32}) {
            const size_t w = width / size_t(stride), h = height / size_t(stride);
            RefMap map = random_map(4 * bins + classes + 3 * points, h, w, seed++, -1, 1);
            for (size_t k = 0; k < classes; ++k)
                for (size_t y = 0; y < h; ++y)
                    for (size_t x = 0; x < w; ++x) map.at(4 * bins + k, y, x) = -5;
            const size_t x = w / 2, y = h / 3;
            map.at(4 * bins + 1, y, x) = 2;
            double side[4] = {};
            for (size_t k = 0; k < 4; ++k) {
                double sum = 0;
                for (size_t b = 0; b < bins; ++b) {
                    const double weight = std::exp(double(map.at(k * bins + b, y, x)));
                    sum += weight, side[k] += weight * double(b);
                }
                side[k] *= stride / sum;
            }
            const double cx = (double(x) + 0.5) * stride, cy = (double(y) + 0.5) * stride;
            boxes.push_back({std::max(0., cx - side[0]), cy - side[1], cx + side[2],
                             std::min<double>(height, cy + side[3]), sigmoid(2), 1});
            if (points)
                first_point.push_back((2 * double(map.at(4 * bins + classes, y, x)) + double(x)) *
                                      stride);
            tensors.insert(tensors.begin(), stored_map(map, "out" + std::to_string(stride),
                                                       MapView::nchw));  // any order
        }
        DecodeOptions options{.decoder = points ? "yolo-v8-pose" : "yolo-v8"};
        options.nms = Nms::off;
        const Decoded decoded = decode_tensors(tensors, info, width, height, options);
        ASSERT_EQ(decoded.detections.size(), 3u);
        for (const Detection& found : decoded.detections) {
            const auto level = std::ranges::min_element(boxes, {}, [&](const RefBox& box) {
                return std::abs(box.x0 - double(found.x0)) + std::abs(box.y1 - double(found.y1));
            });
            EXPECT_NEAR(found.x0, level->x0, 1e-3);
            EXPECT_NEAR(found.y1, level->y1, 1e-3);
            EXPECT_NEAR(found.score, level->score, 1e-5);
            EXPECT_EQ(found.class_id, 1);
            EXPECT_EQ(found.keypoints, points);
            if (points) {
                EXPECT_NEAR(decoded.keypoints[found.first_keypoint].x,
                            first_point[size_t(level - boxes.begin())], 1e-3);
            }
        }
    }
}

// Some exports keep the sigmoid of the classes; then the sidecar leaves it out.
TEST(RawMapsOfYoloV8, TakeTheActivationThatTheSidecarNames) {
    std::vector<StoredTensor> tensors;
    for (const int stride : {8, 16, 32}) {
        RefMap map(64 + 3, height / size_t(stride), width / size_t(stride));
        if (stride == 16) map.at(64 + 2, 3, 4) = 0.75f;
        tensors.push_back(stored_map(map, "out" + std::to_string(stride), MapView::nchw));
    }
    ModelInfo info;
    info.activation = "none";
    const Decoded decoded =
        decode_tensors(tensors, info, width, height, {.decoder = "yolo-v8", .nms = Nms::off});
    ASSERT_EQ(decoded.detections.size(), 1u);
    EXPECT_EQ(decoded.detections[0].score, 0.75f);
    EXPECT_EQ(decoded.detections[0].class_id, 2);
}

// 427 pixels are 53, 27 and 14 cells: the strides are powers of two, whatever the division gives.
TEST(RawMapsOfYoloV8, StandOnStridesOfPowersOfTwo) {
    constexpr uint32_t wide = 427, high = 240;
    std::vector<StoredTensor> tensors;
    for (const uint32_t stride : {8u, 16u, 32u}) {
        RefMap map(64 + 3, (high + stride - 1) / stride, (wide + stride - 1) / stride);
        for (float& value : map.data) value = -9;
        if (stride == 32) map.at(64, 3, 10) = 3;
        tensors.push_back(stored_map(map, "out" + std::to_string(stride), MapView::nchw));
    }
    const Decoded decoded =
        decode_tensors(tensors, {}, wide, high, {.decoder = "yolo-v8", .nms = Nms::off});
    ASSERT_EQ(decoded.detections.size(), 1u);
    const Detection& found = decoded.detections[0];
    EXPECT_NEAR(found.x0, 10.5 * 32 - 7.5 * 32, 1e-2);  // equal weights: the middle of 0 to 15
    EXPECT_EQ(found.x1, wide);
}

// The same maps may be those of anchors, so nothing but a name chooses.
TEST(RawMapsOfYoloV8, AreNotChosenByTheirShapes) {
    std::vector<TensorInfo> outputs(3);
    for (uint32_t i = 0; i < 3; ++i) {
        outputs[i].name = "out" + std::to_string(i);
        outputs[i].cpu = make_view(DataType::float32, Layout::NCHW,
                                   {1, 64 + 80, height / (8u << i), width / (8u << i)});
    }
    const auto decoder = Decoder::create({}, outputs, width, height, {});
    EXPECT_TRUE(!decoder || decoder->family() != "yolo-v8");
    EXPECT_TRUE(Decoder::create({}, outputs, width, height, {.decoder = "yolo-v8"}));
}

}  // namespace
