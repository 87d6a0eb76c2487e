// SPDX-License-Identifier: Apache-2.0
// YOLO heads that give more than boxes, against plain loops.
#include <gtest/gtest.h>

#include <limits>
#include <numbers>

#include "tests/vision/map_tensors.h"

using namespace vartml;
using namespace vartml::test;

namespace {

constexpr uint32_t width = 320, height = 256;
constexpr size_t cells = 40 * 32 + 20 * 16 + 10 * 8;  // of strides 8, 16, 32
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// A head of the YOLO v8 line: box, classes, and columns of `extra` numbers that `fill` gives.
template <typename Fill>
RefTensor task_head(size_t classes, size_t extra, unsigned seed, Fill fill) {
    RefTensor t = random_head(cells, 4 + classes + extra, true, 4, seed, centred_value);
    std::mt19937 random(seed + 100);
    for (size_t p = 0; p < cells; ++p) {
        for (size_t k = 0; k < extra; ++k) {
            t.data[(4 + classes + k) * cells + p] = fill(k, p, random);
        }
    }
    return t;
}

// Positions that NMS keeps, best first; `on_frame`: without those beyond a frame like the input.
std::vector<size_t> kept_positions(const RefTensor& t, size_t classes, bool on_frame = true) {
    std::vector<size_t> order;
    std::vector<RefBox> boxes;
    for (size_t p = 0; p < t.positions; ++p) {
        int best = 0;
        for (size_t c = 0; c < classes; ++c) {
            if (t.at(p, 4 + c) > t.at(p, 4 + static_cast<size_t>(best))) best = static_cast<int>(c);
        }
        const float score = t.at(p, 4 + static_cast<size_t>(best));
        boxes.push_back(ref_centred(t.at(p, 0), t.at(p, 1), t.at(p, 2), t.at(p, 3), score, best));
        if (score >= 0.25f) order.push_back(p);
    }
    std::ranges::stable_sort(order,
                             [&](size_t a, size_t b) { return boxes[a].score > boxes[b].score; });
    std::vector<size_t> kept;
    for (const size_t p : order) {
        const bool free = std::ranges::none_of(kept, [&](size_t other) {
            return boxes[p].class_id == boxes[other].class_id &&
                   ref_iou(boxes[p], boxes[other]) > 0.45;
        });
        if (free && kept.size() < 100) kept.push_back(p);
    }
    if (on_frame) {
        std::erase_if(kept,
                      [&](size_t p) { return boxes[p].x0 >= width || boxes[p].y0 >= height; });
    }
    return kept;
}

ModelInfo with_classes(unsigned classes) {
    ModelInfo info;
    info.num_classes = classes;
    return info;
}

// ---- poses

struct PoseCase {
    const char* why;
    unsigned classes, points, values;
    const char* skeleton;
    bool say_classes, transposed;
    std::vector<int> keypoints{};
};
const PoseCase poses[] = {
    {"the published COCO model", 1, 17, 3, "", false, false},
    {"without scores of points", 1, 17, 2, "", false, false},
    {"transposed", 1, 17, 3, "", false, true},
    {"several classes, known by their number", 3, 5, 3, "", true, false},
    {"twelve numbers: four points with scores", 2, 4, 3, "", true, false},
    {"twelve numbers that a skeleton makes six points", 2, 6, 2, "0-1;1-5", true, false},
    {"twelve numbers that the sidecar makes six points", 2, 6, 2, "", true, false, {6, 2}},
    {"classes that nobody counts, as the sidecar says the points",
     3,
     6,
     2,
     "",
     false,
     false,
     {6, 2}},
};
class Poses : public testing::TestWithParam<PoseCase> {};
TEST_P(Poses, BringTheKeypointsOfTheirBoxes) {
    const PoseCase& c = GetParam();
    SCOPED_TRACE(c.why);
    const unsigned extra = c.points * c.values;
    RefTensor t = task_head(c.classes, extra, 3, [&](size_t k, size_t, std::mt19937& random) {
        std::uniform_real_distribution<float> coordinate(0, 256), unit(0, 1);
        return c.values == 3 && k % 3 == 2 ? unit(random) : coordinate(random);
    });
    if (c.transposed) {
        RefTensor other{std::vector<float>(t.data.size()), t.positions, t.attributes, false};
        for (size_t p = 0; p < t.positions; ++p) {
            for (size_t a = 0; a < t.attributes; ++a) other.data[p * t.attributes + a] = t.at(p, a);
        }
        t = other;
    }
    ModelInfo info;
    if (c.say_classes) info.num_classes = c.classes;
    info.skeleton = c.skeleton;
    info.keypoints = c.keypoints;
    for (const bool hw : {false, true}) {
        const StoredTensor tensor = hw ? stored_hw(t, "out", DataType::bf16) : stored_cpu(t, "out");
        // Letterboxed: a frame of 640x360 at half size, 38 rows of border above.
        const Affine map{.a = 2, .b = 0, .c = 0, .d = 0, .e = 2, .f = -76};
        const Decoded decoded = decode_tensors(
            {tensor}, info, width, height,
            {.decoder = "yolo-v8-pose", .keypoint_threshold = c.values == 3 ? 0.5 : 0}, map, 640,
            360);
        size_t seen = 0;
        for (const size_t p : kept_positions(t, c.classes, false)) {
            const float cy = 2 * t.at(p, 1) - 76, h = 2 * t.at(p, 3);
            if (cy + h / 2 <= 0 || cy - h / 2 >= 360) continue;
            ASSERT_LT(seen, decoded.detections.size());
            const Detection& d = decoded.detections[seen++];
            ASSERT_EQ(d.keypoints, c.points);
            for (size_t k = 0; k < c.points; ++k) {
                const Keypoint& point = decoded.keypoints[d.first_keypoint + k];
                const size_t column = 4 + c.classes + k * c.values;
                const float score = c.values == 3 ? t.at(p, column + 2) : 1;
                EXPECT_NEAR(point.x, 2 * t.at(p, column), 1e-3);
                EXPECT_NEAR(point.y, 2 * t.at(p, column + 1) - 76, 1e-3);
                EXPECT_EQ(point.score, score);
                EXPECT_EQ(point.visible, score >= (c.values == 3 ? 0.5f : 0.f));
            }
        }
        EXPECT_EQ(decoded.detections.size(), seen);
        EXPECT_GT(seen, 3u);
    }
}
INSTANTIATE_TEST_SUITE_P(Table, Poses, testing::ValuesIn(poses));

TEST(Poses, OfOtherKeypointsThanTheSidecarSaysAreRefused) {
    TensorInfo out;
    out.name = "out";
    out.cpu = make_view(DataType::float32, Layout::NHW, {1, 5 + 12, uint32_t{cells}});
    ModelInfo info = with_classes(1);
    for (const auto& keypoints : {std::vector<int>{5, 2}, {17, 3}}) {
        info.keypoints = keypoints;
        const auto decoder =
            Decoder::create(info, {&out, 1}, width, height, {.decoder = "yolo-v8-pose"});
        ASSERT_FALSE(decoder);
        EXPECT_NE(decoder.error().message.find("x-vartml-keypoints"), std::string::npos)
            << decoder.error().message;
    }
}

TEST(Poses, DoubtScoresOfPointsThatAreCoordinates) {
    // Six points of two values, read as four of three.
    const RefTensor t =
        task_head(1, 12, 3, [](size_t k, size_t, std::mt19937&) { return k % 2 ? 120.f : 50.f; });
    const StoredTensor tensor = stored_cpu(t, "out");
    const OutputTensor output = tensor.output();
    for (const bool said : {false, true}) {
        ModelInfo info = with_classes(1);
        if (said) info.keypoints = {6, 2};
        auto decoder =
            Decoder::create(info, {&tensor.info, 1}, width, height, {.decoder = "yolo-v8-pose"});
        ASSERT_TRUE(decoder) << decoder.error().message;
        Decoded decoded;
        ASSERT_TRUE(decoder->decode({&output, 1}, {}, width, height, decoded));
        EXPECT_EQ(decoder->doubt().find("the score of a point is") == std::string::npos, said)
            << decoder->doubt();
    }
}

TEST(Poses, KeepThePlaceOfAPointThatIsNoNumber) {
    RefTensor t = task_head(1, 51, 3, [](size_t, size_t, std::mt19937&) { return 7.f; });
    const size_t best = kept_positions(t, 1).front();
    t.data[(5 + 3 * 4) * cells + best] = nan;
    const Decoded decoded =
        decode_tensors({stored_cpu(t, "out")}, {}, width, height, {.decoder = "yolo-v8-pose"});
    ASSERT_EQ(decoded.detections.at(0).keypoints, 17u);
    EXPECT_FALSE(decoded.keypoints[4].visible);
    EXPECT_EQ(decoded.keypoints[4].score, 0);
    EXPECT_TRUE(std::isfinite(decoded.keypoints[4].x));
    EXPECT_TRUE(decoded.keypoints[5].visible);
    EXPECT_EQ(decoded.not_finite, 1u);
}

TEST(Poses, HaveTheSkeletonOfTheSidecarElseCocos) {
    const auto skeleton = [](unsigned points, const char* of_sidecar) {
        ModelInfo info = with_classes(1);
        info.skeleton = of_sidecar;
        TensorInfo out;
        out.name = "out";
        out.cpu = make_view(DataType::float32, Layout::NHW, {1, 5 + 3 * points, uint32_t{cells}});
        auto decoder = Decoder::create(info, {&out, 1}, width, height, {.decoder = "yolo-v8-pose"});
        return decoder ? decoder->skeleton() : decoder.error().message;
    };
    EXPECT_EQ(skeleton(17, ""), "coco17");
    EXPECT_EQ(skeleton(21, ""), "");
    EXPECT_EQ(skeleton(21, "0-1;1-2"), "0-1;1-2");
}

// ---- masks

struct MaskCase {
    const char* why;
    unsigned channels, map_height, map_width;
    float threshold;
};
const MaskCase masks[] = {
    {"the published 32 prototypes at a quarter", 32, 64, 80, 0.5f},
    {"few prototypes, another resolution, a strict threshold", 5, 32, 40, 0.8f},
    {"everything is object", 8, 64, 80, 0},
};
class Masks : public testing::TestWithParam<MaskCase> {};
TEST_P(Masks, AreTheSigmoidOfCoefficientsTimesPrototypes) {
    const MaskCase& c = GetParam();
    SCOPED_TRACE(c.why);
    for (const MapView view : map_views) {
        RefMap prototypes = random_map(c.channels, c.map_height, c.map_width, 5);
        const StoredTensor second = stored_map(prototypes, "output1", view);
        const RefTensor t = task_head(3, c.channels, 8, [](size_t, size_t, std::mt19937& random) {
            return std::uniform_real_distribution<float>(-1, 1)(random);
        });
        const Decoded decoded =
            decode_tensors({stored_cpu(t, "output0"), second}, with_classes(3), width, height,
                           {.decoder = "yolo-v8-seg", .mask_threshold = c.threshold});
        const auto kept = kept_positions(t, 3);
        ASSERT_EQ(decoded.detections.size(), kept.size());
        ASSERT_GT(kept.size(), 3u);
        const float cell = static_cast<float>(width) / static_cast<float>(c.map_width);
        size_t pixels = 0, different = 0;
        for (size_t i = 0; i < kept.size(); ++i) {
            const Detection& d = decoded.detections[i];
            ASSERT_EQ(d.mask, static_cast<int>(i));
            const Mask& mask = decoded.masks[i];
            // Slivers at the edge of the frame keep a cell, as small boxes do.
            if (d.x1 - d.x0 < cell || d.y1 - d.y0 < cell) continue;
            // Every cell of the picture: in the mask where its centre is in the box.
            for (size_t y = 0; y < c.map_height; ++y) {
                for (size_t x = 0; x < c.map_width; ++x) {
                    const float cx = (static_cast<float>(x) + 0.5f) * cell,
                                cy = (static_cast<float>(y) + 0.5f) * cell;
                    const bool in_box = cx >= d.x0 && cx < d.x1 && cy >= d.y0 && cy < d.y1;
                    const bool in_mask =
                        cx > mask.x0 && cx < mask.x1 && cy > mask.y0 && cy < mask.y1;
                    ASSERT_EQ(in_mask, in_box) << x << "," << y;
                    if (!in_box) continue;
                    double sum = 0;
                    for (size_t k = 0; k < c.channels; ++k) {
                        sum += double(t.at(kept[i], 7 + k)) * prototypes.at(k, y, x);
                    }
                    const bool object = 1 / (1 + std::exp(-sum)) >= double(c.threshold);
                    const auto mx = static_cast<size_t>((cx - mask.x0) / cell),
                               my = static_cast<size_t>((cy - mask.y0) / cell);
                    const uint8_t found = decoded.mask_pixels[mask.first + my * mask.width + mx];
                    different += found != object;
                    ++pixels;
                }
            }
        }
        EXPECT_GT(pixels, 1000u);
        EXPECT_LE(different, pixels / 1000) << "of " << pixels;  // sums at the threshold
    }
}
INSTANTIATE_TEST_SUITE_P(Table, Masks, testing::ValuesIn(masks));

TEST(Masks, OfABoxWithoutFiniteCoefficientsIsLeftOut) {
    RefTensor t = task_head(1, 4, 8, [](size_t, size_t, std::mt19937&) { return 1.f; });
    t.data[7 * cells + kept_positions(t, 1).front()] = nan;
    RefMap prototypes = random_map(4, 64, 80, 5);
    const Decoded decoded =
        decode_tensors({stored_cpu(t, "output0"), stored_map(prototypes, "output1", MapView::nchw)},
                       {}, width, height, {.decoder = "yolo-v8-seg"});
    EXPECT_EQ(decoded.detections.at(0).mask, -1);
    EXPECT_EQ(decoded.detections.at(1).mask, 0);
    EXPECT_EQ(decoded.not_finite, 1u);
}

TEST(Masks, OfABoxSmallerThanACellIsOnePixel) {
    RefTensor t{std::vector<float>(cells * 9), cells, 9, true};
    const float values[] = {101, 55, 1, 1, 0.9f, 1, 0, 0, 0};
    for (size_t a = 0; a < 9; ++a) t.data[a * cells] = values[a];
    RefMap prototypes = random_map(4, 64, 80, 5, 0.5f, 1);
    const Decoded decoded =
        decode_tensors({stored_cpu(t, "output0"), stored_map(prototypes, "output1", MapView::nchw)},
                       {}, width, height, {.decoder = "yolo-v8-seg"});
    ASSERT_EQ(decoded.masks.size(), 1u);
    EXPECT_EQ(decoded.masks[0].x0, 100);
    EXPECT_EQ(decoded.masks[0].x1, 104);
    EXPECT_EQ(decoded.masks[0].y0, 52);
    EXPECT_EQ(decoded.mask_pixels, std::vector<uint8_t>{1});
}

// ---- turned boxes

using Points = std::vector<std::pair<double, double>>;

Points turned_corners(double cx, double cy, double w, double h, double angle) {
    Points points;
    for (const auto& [u, v] : {std::pair(-1, -1), {1, -1}, {1, 1}, {-1, 1}}) {
        const double x = u * w / 2, y = v * h / 2;
        points.push_back({cx + x * std::cos(angle) - y * std::sin(angle),
                          cy + x * std::sin(angle) + y * std::cos(angle)});
    }
    return points;
}

// Overlap by counting points of a fine grid: another way than cutting polygons.
double sampled_iou(const Points& a, const Points& b) {
    const auto inside = [](const Points& polygon, double x, double y) {
        bool in = true;
        for (size_t i = 0; i < 4; ++i) {
            const auto& [px, py] = polygon[i];
            const auto& [qx, qy] = polygon[(i + 1) % 4];
            in = in && (qx - px) * (y - py) - (qy - py) * (x - px) >= 0;
        }
        return in;
    };
    double x0 = 1e9, y0 = 1e9, x1 = -1e9, y1 = -1e9;
    for (const Points* points : {&a, &b}) {
        for (const auto& [x, y] : *points) {
            x0 = std::min(x0, x), x1 = std::max(x1, x), y0 = std::min(y0, y), y1 = std::max(y1, y);
        }
    }
    int both = 0, any = 0;
    constexpr int steps = 200;
    for (int i = 0; i < steps; ++i) {
        for (int k = 0; k < steps; ++k) {
            const double x = x0 + (x1 - x0) * (i + 0.5) / steps,
                         y = y0 + (y1 - y0) * (k + 0.5) / steps;
            const bool in_a = inside(a, x, y), in_b = inside(b, x, y);
            both += in_a && in_b;
            any += in_a || in_b;
        }
    }
    return any ? double(both) / any : 0;
}

Points corners(const Detection& d) {
    return turned_corners((double(d.x0) + d.x1) / 2, (double(d.y0) + d.y1) / 2, double(d.x1) - d.x0,
                          double(d.y1) - d.y0, d.angle);
}

// A head of one class with boxes written one by one: centre, size, score, angle.
RefTensor turned_head(const std::vector<std::array<float, 6>>& boxes) {
    RefTensor t{std::vector<float>(cells * 6), cells, 6, true};
    for (size_t p = 0; p < boxes.size(); ++p) {
        for (size_t a = 0; a < 6; ++a) t.data[a * cells + p] = boxes[p][a];
    }
    return t;
}

Decoded decode_turned(const std::vector<std::array<float, 6>>& boxes,
                      const DecodeOptions& options = {}, const Affine& map = {}, uint32_t w = width,
                      uint32_t h = height) {
    DecodeOptions named = options;
    named.decoder = "yolo-v8-obb";
    return decode_tensors({stored_cpu(turned_head(boxes), "out")}, {}, width, height, named, map, w,
                          h);
}

TEST(TurnedBoxes, KeepCornersBeforeTheTurnAndTheAngle) {
    const Decoded decoded =
        decode_turned({{100, 80, 60, 20, 0.9f, 0.5f}, {200, 80, 60, 20, 0.8f, -0.4f}});
    ASSERT_EQ(decoded.detections.size(), 2u);
    const Detection& d = decoded.detections[0];
    EXPECT_NEAR(d.x0, 70, 1e-4);
    EXPECT_NEAR(d.x1, 130, 1e-4);
    EXPECT_NEAR(d.y0, 70, 1e-4);
    EXPECT_NEAR(d.y1, 90, 1e-4);
    EXPECT_NEAR(d.angle, 0.5, 1e-6);
    EXPECT_NEAR(decoded.detections[1].angle, -0.4, 1e-6);
}

TEST(TurnedBoxes, SuppressEachOtherAsPolygons) {
    std::mt19937 random(9);
    std::uniform_real_distribution<float> place(60, 180), side(20, 90), turn(-0.78f, 2.35f),
        unit(0, 1);
    for (int round = 0; round < 5; ++round) {
        std::vector<std::array<float, 6>> boxes;
        for (int i = 0; i < 60; ++i) {
            boxes.push_back({place(random), place(random), side(random), side(random) / 3,
                             0.3f + 0.7f * unit(random), turn(random)});
        }
        std::ranges::sort(boxes, [](const auto& a, const auto& b) { return a[4] > b[4]; });
        // Leave out boxes whose overlap the sampling cannot tell from the threshold.
        std::vector<std::array<float, 6>> kept, clear;
        const auto points = [](const std::array<float, 6>& b) {
            return turned_corners(b[0], b[1], b[2], b[3], b[5]);
        };
        for (const auto& box : boxes) {
            double most = 0;
            for (const auto& other : kept)
                most = std::max(most, sampled_iou(points(box), points(other)));
            if (std::abs(most - 0.3) < 0.02) continue;
            clear.push_back(box);
            if (most < 0.3) kept.push_back(box);
        }
        const Decoded decoded = decode_turned(clear, {.iou_threshold = 0.3});
        ASSERT_EQ(decoded.detections.size(), kept.size()) << "round " << round;
        EXPECT_EQ(decoded.suppressed, clear.size() - kept.size());
        EXPECT_GT(decoded.suppressed, 2u);
        for (size_t i = 0; i < kept.size(); ++i) {
            EXPECT_GE(sampled_iou(corners(decoded.detections[i]), points(kept[i])), 0.99);
        }
    }
}

TEST(TurnedBoxes, CrossWithoutSuppressing) {
    // A cross of two thin boxes: their upright hulls are nearly the same.
    const std::vector<std::array<float, 6>> cross = {{100, 100, 80, 6, 0.9f, 0.7854f},
                                                     {100, 100, 80, 6, 0.8f, -0.7854f}};
    EXPECT_EQ(decode_turned(cross).detections.size(), 2u);
    EXPECT_EQ(decode_turned({cross[0], {100, 101, 80, 6, 0.8f, 0.7854f}}).detections.size(), 1u);
}

TEST(TurnedBoxes, StayWholeAtTheEdgeAndGoOutsideOfIt) {
    const Decoded decoded = decode_turned({{0, 100, 80, 20, 0.9f, 0.3f},         // half outside
                                           {-60, 200, 80, 20, 0.8f, 0.3f},       // all outside
                                           {-25, -25, 60, 60, 0.7f, 0.7854f}});  // all but its hull
    ASSERT_EQ(decoded.detections.size(), 1u);
    EXPECT_NEAR(decoded.detections[0].x0, -40, 1e-4);
    EXPECT_NEAR(decoded.detections[0].x1, 40, 1e-4);
}

TEST(TurnedBoxes, MapThroughEqualScalesExactly) {
    const Affine map{.a = 2, .b = 0, .c = 5, .d = 0, .e = 2, .f = -7};
    const Decoded decoded = decode_turned({{100, 80, 60, 20, 0.9f, 1.2f}}, {}, map, 1000, 1000);
    ASSERT_EQ(decoded.detections.size(), 1u);
    EXPECT_NEAR(decoded.detections[0].angle, 1.2, 1e-6);
    EXPECT_GE(sampled_iou(corners(decoded.detections[0]), turned_corners(205, 153, 120, 40, 1.2)),
              0.999);
}

TEST(TurnedBoxes, MapThroughUnequalScalesAroundTheObject) {
    // Stretched by 3 in x alone: the box becomes a parallelogram.
    const Affine map{.a = 3, .b = 0, .c = 0, .d = 0, .e = 1, .f = 0};
    for (const double angle : {0.001, 0.3, 0.7854, 1.2, 1.5707, 2.2, -0.5}) {
        const Decoded decoded = decode_turned({{100, 100, 60, 20, 0.9f, static_cast<float>(angle)}},
                                              {}, map, 1000, 1000);
        ASSERT_EQ(decoded.detections.size(), 1u);
        const Points rectangle = corners(decoded.detections[0]);
        const auto within = [&](double x, double y) {
            bool in = true;
            for (size_t i = 0; i < 4; ++i) {
                const auto& [px, py] = rectangle[i];
                const auto& [qx, qy] = rectangle[(i + 1) % 4];
                in = in && (qx - px) * (y - py) - (qy - py) * (x - px) >= -1e-2;
            }
            return in;
        };
        // It holds the parallelogram, and is the least of the rectangles that do (all directions
        // tried in steps of a tenth of a degree).
        Points parallelogram = turned_corners(100, 100, 60, 20, angle);
        for (auto& [x, y] : parallelogram) {
            x *= 3;
            EXPECT_TRUE(within(x, y)) << angle;
        }
        double least = 1e9;
        for (int step = 0; step < 1800; ++step) {
            const double turn = step * std::numbers::pi / 1800;
            double u0 = 1e9, u1 = -1e9, v0 = 1e9, v1 = -1e9;
            for (const auto& [x, y] : parallelogram) {
                const double u = x * std::cos(turn) + y * std::sin(turn),
                             v = y * std::cos(turn) - x * std::sin(turn);
                u0 = std::min(u0, u), u1 = std::max(u1, u), v0 = std::min(v0, v),
                v1 = std::max(v1, v);
            }
            least = std::min(least, (u1 - u0) * (v1 - v0));
        }
        const Detection& d = decoded.detections[0];
        EXPECT_NEAR((d.x1 - d.x0) * (d.y1 - d.y0) / least, 1, 0.01) << angle;
    }
}

TEST(TurnedBoxes, DropAnAngleThatIsNoNumber) {
    const Decoded decoded =
        decode_turned({{100, 80, 60, 20, 0.9f, nan}, {200, 80, 60, 20, 0.8f, 0.1f}});
    EXPECT_EQ(decoded.detections.size(), 1u);
    EXPECT_EQ(decoded.not_finite, 1u);
}

TEST(TurnedBoxes, GiveTheSameFloatsFromTheNpusView) {
    std::mt19937 random(4);
    std::uniform_real_distribution<float> place(20, 230), side(20, 90), turn(-0.7f, 2.3f),
        unit(0, 1);
    std::vector<std::array<float, 6>> boxes;
    for (int i = 0; i < 200; ++i) {
        boxes.push_back(
            {place(random), place(random), side(random), side(random), unit(random), turn(random)});
    }
    RefTensor t = turned_head(boxes);
    const DecodeOptions options{.decoder = "yolo-v8-obb"};
    const Decoded hw =
        decode_tensors({stored_hw(t, "out", DataType::bf16)}, {}, width, height, options);
    const Decoded cpu = decode_tensors({stored_cpu(t, "out")}, {}, width, height, options);
    ASSERT_GT(cpu.detections.size(), 5u);
    ASSERT_EQ(hw.detections.size(), cpu.detections.size());
    for (size_t i = 0; i < cpu.detections.size(); ++i) {
        EXPECT_EQ(hw.detections[i].angle, cpu.detections[i].angle);
        EXPECT_EQ(hw.detections[i].x0, cpu.detections[i].x0);
    }
}

}  // namespace
