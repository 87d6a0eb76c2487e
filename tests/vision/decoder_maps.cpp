// SPDX-License-Identifier: Apache-2.0
// Class maps, heat maps, landmarks and embeddings against plain loops.
#include <gtest/gtest.h>

#include <limits>

#include "tests/vision/map_tensors.h"

using namespace vartml;
using namespace vartml::test;

namespace {

constexpr uint32_t width = 128, height = 96;
constexpr float nan = std::numeric_limits<float>::quiet_NaN(),
                inf = std::numeric_limits<float>::infinity();

std::string view_name(const testing::TestParamInfo<MapView>& info) {
    constexpr const char* names[] = {"Nchw", "Nhwc", "Bf16OfTheNpu", "Int8OfTheNpu"};
    return names[static_cast<int>(info.param)];
}

// ---- segment

class Segments : public testing::TestWithParam<MapView> {};

TEST_P(Segments, GiveEachCellItsGreatestClass) {
    RefMap map = random_map(5, 24, 32, 3);
    const StoredTensor tensor = stored_map(map, "out", GetParam());
    const Decoded decoded = decode_tensors({tensor}, {}, width, height, {.decoder = "segment"});
    ASSERT_EQ(decoded.class_maps.size(), 1u);
    const Mask& m = decoded.class_maps[0];
    EXPECT_EQ(m.width, 32u);
    EXPECT_EQ(m.height, 24u);
    EXPECT_EQ(m.x0, 0);
    EXPECT_EQ(m.x1, 128);
    EXPECT_EQ(m.y1, 96);
    for (size_t y = 0; y < 24; ++y) {
        for (size_t x = 0; x < 32; ++x) {
            size_t best = 0;
            for (size_t c = 1; c < 5; ++c) best = map.at(c, y, x) > map.at(best, y, x) ? c : best;
            ASSERT_EQ(decoded.mask_pixels[m.first + y * 32 + x], best) << x << "," << y;
        }
    }
}

// As lane detectors give lanes and drivable area.
TEST_P(Segments, OfSeveralOutputsAreAClassEach) {
    RefMap area = random_map(2, 24, 32, 5), lanes = random_map(2, 24, 32, 6);
    const std::vector<StoredTensor> tensors = {stored_map(area, "drivable_area", GetParam()),
                                               stored_map(lanes, "lanes", GetParam())};
    const Decoded decoded = decode_tensors(tensors, {}, width, height, {.decoder = "segment"});
    ASSERT_EQ(decoded.class_maps.size(), 2u);
    for (size_t k = 0; k < 2; ++k) {
        const RefMap& map = k ? lanes : area;
        for (size_t y = 0; y < 24; ++y) {
            for (size_t x = 0; x < 32; ++x) {
                const size_t want = map.at(1, y, x) > map.at(0, y, x) ? k : 255;
                ASSERT_EQ(decoded.mask_pixels[decoded.class_maps[k].first + y * 32 + x], want);
            }
        }
    }
    const std::vector<TensorInfo> infos = {tensors[0].info, tensors[1].info};
    const auto decoder = Decoder::create({}, infos, width, height, {.decoder = "segment"});
    ASSERT_TRUE(decoder);
    EXPECT_EQ(decoder->label(0), "drivable_area");
    EXPECT_EQ(decoder->label(1), "lanes");
}

TEST_P(Segments, OfOneChannelReachTheThreshold) {
    for (const char* activation : {"", "sigmoid"}) {
        RefMap map = random_map(1, 96, 128, 4);
        const StoredTensor tensor = stored_map(map, "out", GetParam());
        ModelInfo info;
        info.activation = activation;
        for (const double threshold : {0.5, 0.55}) {
            const Decoded decoded =
                decode_tensors({tensor}, info, width, height, {.mask_threshold = threshold});
            ASSERT_EQ(decoded.class_maps.size(), 1u);
            for (size_t i = 0; i < map.data.size(); ++i) {
                const float v = map.data[i];
                const float p = *activation ? 1 / (1 + std::exp(-v)) : v;
                ASSERT_EQ(decoded.mask_pixels[i], p >= static_cast<float>(threshold) ? 0 : 255)
                    << v;
            }
        }
    }
}

TEST_P(Segments, OfSeveralLabelsHaveAMapForEachClassThatOccurs) {
    RefMap map = random_map(3, 24, 32, 5);
    for (size_t i = 0; i < 24 * 32; ++i) map.data[24 * 32 + i] = -5;  // class 1 nowhere
    const StoredTensor tensor = stored_map(map, "out", GetParam());
    ModelInfo info;
    info.activation = "sigmoid";
    const Decoded decoded = decode_tensors({tensor}, info, width, height, {.decoder = "segment"});
    ASSERT_EQ(decoded.class_maps.size(), 2u);
    for (size_t k = 0; k < 2; ++k) {
        const size_t c = 2 * k;
        for (size_t i = 0; i < 24 * 32; ++i) {
            const float v = map.data[c * 24 * 32 + i];
            const uint8_t pixel = decoded.mask_pixels[decoded.class_maps[k].first + i];
            ASSERT_EQ(pixel, v >= 0 ? c : 255) << v;
        }
    }
}

// What the graph has done is not done again, whatever the sidecar says of it.
TEST_P(Segments, OfAModelThatEndsInSigmoidAreItsScores) {
    for (const uint32_t channels : {1u, 3u}) {
        RefMap map = random_map(channels, 24, 32, 5, 0.1f, 0.9f);
        const StoredTensor tensor = stored_map(map, "out", GetParam());
        for (const char* activation : {"", "sigmoid"}) {
            ModelInfo info;
            info.activation = activation;
            info.outputs = {{.name = "out", .id = "", .role = "", .ends_in = "sigmoid"}};
            const Decoded decoded =
                decode_tensors({tensor}, info, width, height, {.decoder = "segment"});
            ASSERT_EQ(decoded.class_maps.size(), channels);
            for (size_t c = 0; c < channels; ++c)
                for (size_t i = 0; i < 24 * 32; ++i)
                    ASSERT_EQ(decoded.mask_pixels[decoded.class_maps[c].first + i],
                              map.data[c * 24 * 32 + i] >= 0.5f ? c : 255);
        }
    }
}

int wide_pixel(const Decoded& decoded, const Mask& map, size_t index) {
    EXPECT_EQ(map.pixel_bytes, 2u);
    uint16_t pixel;
    std::memcpy(&pixel, &decoded.mask_pixels[map.first + 2 * index], 2);
    return pixel;
}

TEST_P(Segments, OfMoreClassesThanAByteTellsHavePixelsOfTwo) {
    RefMap map = random_map(300, 12, 16, 9);
    for (size_t i = 0; i < 12 * 16; ++i) map.data[(i * 61 % 300) * 12 * 16 + i] = 1.5f;
    const StoredTensor tensor = stored_map(map, "out", GetParam());
    ModelInfo info;
    info.class_offset = -1;
    const Affine half{.a = 2, .b = 0, .c = 0, .d = 0, .e = 2, .f = -48};  // as of a letterbox
    const Decoded all = decode_tensors({tensor}, info, width, height, {.decoder = "segment"});
    const Decoded some = decode_tensors({tensor}, info, width, height,
                                        {.decoder = "segment", .classes = {"60", "271"}});
    const Decoded cut =
        decode_tensors({tensor}, info, width, height, {.decoder = "segment"}, half, 256, 96);
    ASSERT_EQ(cut.class_maps.at(0).height, 6u);
    for (size_t i = 0; i < 12 * 16; ++i) {
        const int best = static_cast<int>(i * 61 % 300), label = best - 1;
        EXPECT_EQ(wide_pixel(all, all.class_maps.at(0), i), label < 0 ? 65535 : label) << i;
        EXPECT_EQ(wide_pixel(some, some.class_maps.at(0), i),
                  label == 60 || label == 271 ? label : 65535);
        if (i < 6 * 16) {
            EXPECT_EQ(wide_pixel(cut, cut.class_maps[0], i),
                      wide_pixel(all, all.class_maps[0], i + 3 * 16));
        }
    }
}
INSTANTIATE_TEST_SUITE_P(Views, Segments, testing::ValuesIn(map_views), view_name);

template <typename T>
StoredTensor labels_of(const std::vector<int>& values, DataType type, std::vector<uint32_t> shape) {
    StoredTensor stored;
    stored.info.name = "out";
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < shape.size(); ++i) order.push_back(i);
    stored.info.cpu = make_view(type, Layout::GENERIC, shape, order);
    for (const int value : values) {
        const auto v = static_cast<T>(value);
        const auto* bytes = reinterpret_cast<const uint8_t*>(&v);
        stored.bytes.insert(stored.bytes.end(), bytes, bytes + sizeof v);
    }
    return stored;
}

TEST(Segments, ReadClassesThatTheModelChose) {
    std::vector<int> values(24 * 32);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i % 19);
    values[7] = 255;
    const StoredTensor tensors[] = {
        labels_of<int64_t>(values, DataType::int64, {1, 24, 32}),
        labels_of<int32_t>(values, DataType::int32, {1, 1, 24, 32}),
        labels_of<uint8_t>(values, DataType::uint8, {1, 24, 32, 1}),
        labels_of<int64_t>(values, DataType::int64, {24, 32}),
    };
    for (const StoredTensor& tensor : tensors) {
        const Decoded decoded = decode_tensors({tensor}, {}, width, height);  // nothing else fits
        ASSERT_EQ(decoded.mask_pixels.size(), values.size());
        for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(decoded.mask_pixels[i], values[i]);
    }
}

TEST(Segments, ReadClassesThatTheModelChoseAndMadeFloats) {
    RefMap map(1, 24, 32);
    for (size_t i = 0; i < map.data.size(); ++i) map.data[i] = static_cast<float>(i % 21);
    for (const MapView view : {MapView::nchw, MapView::nhwc, MapView::hw_bf16}) {
        const StoredTensor tensor = stored_map(map, "out", view);
        ModelInfo info;
        info.outputs = {{.name = "out", .id = "", .role = "", .ends_in = "argmax"}};
        info.labels.assign(21, "thing");  // which one channel does not contradict
        const Decoded decoded = decode_tensors({tensor}, info, width, height);
        ASSERT_EQ(decoded.mask_pixels.size(), map.data.size());
        for (size_t i = 0; i < map.data.size(); ++i) EXPECT_EQ(decoded.mask_pixels[i], i % 21);
    }
}

TEST(Segments, ReadClassesInTheViewOfTheNpu) {
    StoredTensor stored;
    stored.info.name = "out";
    stored.info.cpu = make_view(DataType::int64, Layout::NCHW, {1, 1, 24, 32});
    stored.info.hw = hw_view(stored.info.cpu, Layout::HCWNC8, DataType::int64);
    stored.bytes.assign(size_t{24} * 32 * 8 * sizeof(int64_t), 0x7b);
    for (size_t i = 0; i < size_t{24} * 32; ++i) {
        const auto value = static_cast<int64_t>(i % 19);
        std::memcpy(&stored.bytes[i * 8 * sizeof value], &value, sizeof value);
    }
    const Decoded decoded = decode_tensors({stored}, {}, width, height);
    ASSERT_EQ(decoded.mask_pixels.size(), size_t{24} * 32);
    for (size_t i = 0; i < size_t{24} * 32; ++i) EXPECT_EQ(decoded.mask_pixels[i], i % 19) << i;
}

TEST(Segments, ReadMoreClassesThanAByteTells) {
    std::vector<int> values(24 * 32);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i % 700);
    values[7] = 65535;
    ModelInfo info;
    info.num_classes = 700;
    const Decoded decoded = decode_tensors(
        {labels_of<int32_t>(values, DataType::int32, {1, 24, 32})}, info, width, height);
    for (size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(wide_pixel(decoded, decoded.class_maps.at(0), i), values[i]);
    }
}

TEST(Segments, RefuseMoreClassesThanTwoBytesTell) {
    const StoredTensor tensor =
        labels_of<int32_t>(std::vector<int>(24 * 32), DataType::int32, {1, 24, 32});
    ModelInfo info;
    info.num_classes = 65536;
    const auto decoder =
        Decoder::create(info, {&tensor.info, 1}, width, height, {.decoder = "segment"});
    ASSERT_FALSE(decoder);
    EXPECT_NE(decoder.error().message.find("has 65536 classes, class maps have at most 65535"),
              std::string::npos)
        << decoder.error().message;
}

TEST(Segments, RefuseAClassThatLabelsDoNotHave) {
    std::vector<int> values(24 * 32, 1);
    values[40] = 3;
    const StoredTensor tensor = labels_of<int32_t>(values, DataType::int32, {1, 24, 32});
    ModelInfo info;
    info.labels = {"a", "b", "c"};
    auto decoder = Decoder::create(info, {&tensor.info, 1}, width, height, {});
    ASSERT_TRUE(decoder) << decoder.error().message;
    const OutputTensor output = tensor.output();
    Decoded decoded;
    const auto done = decoder->decode({&output, 1}, {}, width, height, decoded);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("row 40 names class 3"), std::string::npos)
        << done.error().message;
}

TEST(Segments, LeaveOutNumbersThatAreNotFinite) {
    RefMap map(2, 24, 32);
    map.at(0, 0, 0) = nan, map.at(1, 0, 0) = -3;
    map.at(0, 0, 1) = 1, map.at(1, 0, 1) = inf;
    map.at(0, 0, 2) = nan, map.at(1, 0, 2) = nan;
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    const Decoded decoded = decode_tensors({tensor}, {}, width, height, {.decoder = "segment"});
    EXPECT_EQ(decoded.mask_pixels[0], 1);
    EXPECT_EQ(decoded.mask_pixels[1], 0);
    EXPECT_EQ(decoded.mask_pixels[2], 255);
    EXPECT_EQ(decoded.mask_pixels[3], 0);
    EXPECT_EQ(decoded.not_finite, 4u);
}

TEST(Segments, OfSeveralOutputsLeaveThemOutToo) {
    RefMap area(2, 24, 32), lanes(2, 24, 32);
    for (float& value : area.data) value = 0.5f;
    area.at(1, 0, 0) = nan;
    area.at(0, 0, 1) = inf;
    area.at(1, 0, 2) = 1;
    lanes.data = area.data;
    const Decoded decoded = decode_tensors({stored_map(area, "seg_area", MapView::nchw),
                                            stored_map(lanes, "seg_lanes", MapView::nchw)},
                                           {}, width, height, {.decoder = "segment"});
    ASSERT_EQ(decoded.class_maps.size(), 2u);
    for (size_t i = 0; i < 24 * 32; ++i) {
        EXPECT_EQ(decoded.mask_pixels[i], i == 2 ? 0 : 255) << i;
        EXPECT_EQ(decoded.mask_pixels[24 * 32 + i], i == 2 ? 1 : 255) << i;
    }
    EXPECT_EQ(decoded.not_finite, 4u);
}

TEST(Segments, KeepTheClassesAskedForAndShiftTheBackground) {
    RefMap map(3, 24, 32);
    for (size_t i = 0; i < 24 * 32; ++i) map.data[(i % 3) * 24 * 32 + i] = 1;
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    ModelInfo info;
    info.labels = {"cat", "dog"};
    info.class_offset = -1;
    const auto pixels = [&](std::vector<std::string> classes) {
        const Decoded d = decode_tensors({tensor}, info, width, height,
                                         {.decoder = "segment", .classes = classes});
        return std::vector<int>(d.mask_pixels.begin(), d.mask_pixels.begin() + 3);
    };
    EXPECT_EQ(pixels({}), (std::vector<int>{255, 0, 1}));
    EXPECT_EQ(pixels({"dog"}), (std::vector<int>{255, 255, 1}));
}

TEST(Segments, LoseTheBordersOfALetterbox) {
    // A frame of 256x96 in 128x96: half size, 24 rows of border above and below.
    RefMap map(1, 24, 32);
    for (size_t i = 0; i < map.data.size(); ++i) map.data[i] = static_cast<float>(i / 32 % 2);
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    const Affine to_frame{.a = 2, .b = 0, .c = 0, .d = 0, .e = 2, .f = -48};
    const Decoded decoded = decode_tensors({tensor}, {}, width, height, {}, to_frame, 256, 96);
    const Mask& m = decoded.class_maps.at(0);
    EXPECT_EQ(m.width, 32u);
    EXPECT_EQ(m.height, 12u);
    EXPECT_EQ(m.y0, 0);
    EXPECT_EQ(m.y1, 96);
    EXPECT_EQ(m.x1, 256);
    EXPECT_EQ(decoded.mask_pixels[m.first], 255);  // row 6 of the map
    EXPECT_EQ(decoded.mask_pixels[m.first + 32], 0);
}

// ---- heatmap

class Heatmaps : public testing::TestWithParam<MapView> {};

TEST_P(Heatmaps, PeakAQuarterCellTowardsTheLargerNeighbour) {
    RefMap map = random_map(17, 24, 32, 6, 0, 0.9f);
    const StoredTensor tensor = stored_map(map, "out", GetParam());
    const Decoded decoded = decode_tensors({tensor}, {}, width, height,
                                           {.decoder = "heatmap", .score_threshold = 0.89});
    ASSERT_EQ(decoded.keypoints.size(), 17u);
    EXPECT_TRUE(decoded.detections.empty());
    for (size_t k = 0; k < 17; ++k) {
        size_t px = 0, py = 0;
        for (size_t y = 0; y < 24; ++y) {
            for (size_t x = 0; x < 32; ++x) {
                if (map.at(k, y, x) > map.at(k, py, px)) px = x, py = y;
            }
        }
        const auto sign = [](float v) { return v > 0 ? 0.25f : v < 0 ? -0.25f : 0; };
        float x = static_cast<float>(px), y = static_cast<float>(py);
        if (px > 0 && px < 31) x += sign(map.at(k, py, px + 1) - map.at(k, py, px - 1));
        if (py > 0 && py < 23) y += sign(map.at(k, py + 1, px) - map.at(k, py - 1, px));
        EXPECT_EQ(decoded.keypoints[k].x, x * 4);
        EXPECT_EQ(decoded.keypoints[k].y, y * 4);
        EXPECT_EQ(decoded.keypoints[k].score, map.at(k, py, px));
        EXPECT_EQ(decoded.keypoints[k].visible, map.at(k, py, px) >= 0.89f);
    }
}

TEST_P(Heatmaps, MoveByOffsetsWhereThereAre) {
    RefMap map = random_map(5, 12, 16, 7), moves = random_map(10, 12, 16, 8, -20, 20);
    const StoredTensor tensors[] = {stored_map(moves, "short_offsets", GetParam()),
                                    stored_map(map, "heatmaps", GetParam())};
    ModelInfo info;
    info.activation = "sigmoid";
    info.outputs = {{.name = "heatmaps", .id = "", .role = "heatmap", .stride = 8},
                    {.name = "short_offsets", .id = "", .role = "offsets"}};
    const Decoded decoded = decode_tensors({tensors[0], tensors[1]}, info, width, height);
    ASSERT_EQ(decoded.keypoints.size(), 5u);
    for (size_t k = 0; k < 5; ++k) {
        size_t px = 0, py = 0;
        for (size_t y = 0; y < 12; ++y) {
            for (size_t x = 0; x < 16; ++x) {
                if (map.at(k, y, x) > map.at(k, py, px)) px = x, py = y;
            }
        }
        EXPECT_NEAR(decoded.keypoints[k].x, static_cast<float>(px * 8) + moves.at(k + 5, py, px),
                    1e-4);
        EXPECT_NEAR(decoded.keypoints[k].y, static_cast<float>(py * 8) + moves.at(k, py, px), 1e-4);
        EXPECT_NEAR(decoded.keypoints[k].score, 1 / (1 + std::exp(-map.at(k, py, px))), 1e-6);
    }
}
INSTANTIATE_TEST_SUITE_P(Views, Heatmaps, testing::ValuesIn(map_views), view_name);

// PoseNet of TensorFlow: 17 points in 17x17 cells of 257x257 pixels, a cell every 16 pixels. The
// offsets show that the channels of the heat maps are the last axis.
TEST(Heatmaps, OfPoseNetHaveTheirAxesAndItsStride) {
    RefMap map = random_map(17, 17, 17, 3, 0, 1), moves = random_map(34, 17, 17, 4, -8, 8);
    const std::vector<StoredTensor> tensors = {stored_map(map, "heatmaps", MapView::nhwc),
                                               stored_map(moves, "offsets", MapView::nhwc)};
    ModelInfo info;
    info.decoder = "heatmap";
    info.outputs = {{.name = "heatmaps", .id = "", .role = "heatmap"},
                    {.name = "offsets", .id = "", .role = "offsets"}};
    const Decoded decoded = decode_tensors(tensors, info, 257, 257);
    ASSERT_EQ(decoded.keypoints.size(), 17u);
    for (size_t k = 0; k < 17; ++k) {
        size_t px = 0, py = 0;
        for (size_t y = 0; y < 17; ++y)
            for (size_t x = 0; x < 17; ++x)
                if (map.at(k, y, x) > map.at(k, py, px)) px = x, py = y;
        EXPECT_NEAR(decoded.keypoints[k].x, static_cast<float>(px * 16) + moves.at(k + 17, py, px),
                    1e-3);
        EXPECT_NEAR(decoded.keypoints[k].y, static_cast<float>(py * 16) + moves.at(k, py, px),
                    1e-3);
    }
}

// The cells that hang together with the greatest one, found by looking at all again and again.
std::vector<bool> blob_of(const RefMap& map, size_t k, size_t py, size_t px, float threshold) {
    std::vector<bool> in(map.height * map.width);
    in[py * map.width + px] = map.at(k, py, px) >= threshold;
    for (bool grew = true; grew;) {
        grew = false;
        for (size_t y = 0; y < map.height; ++y) {
            for (size_t x = 0; x < map.width; ++x) {
                const size_t i = y * map.width + x;
                const bool beside = (x > 0 && in[i - 1]) || (x + 1 < map.width && in[i + 1]) ||
                                    (y > 0 && in[i - map.width]) ||
                                    (y + 1 < map.height && in[i + map.width]);
                if (in[i] || !beside || map.at(k, y, x) < threshold) continue;
                in[i] = grew = true;
            }
        }
    }
    return in;
}

TEST_P(Heatmaps, HaveTheirCentroidsWhereTheSidecarSaysSo) {
    constexpr float threshold = 0.45f;  // of random cells, about half: blobs of many shapes
    RefMap map = random_map(17, 24, 32, 6, 0, 0.9f);
    const StoredTensor tensor = stored_map(map, "out", GetParam());
    ModelInfo info;
    info.peak = "centroid";
    const Decoded decoded = decode_tensors({tensor}, info, width, height,
                                           {.decoder = "heatmap", .score_threshold = threshold});
    ASSERT_EQ(decoded.keypoints.size(), 17u);
    size_t most = 0;
    for (size_t k = 0; k < 17; ++k) {
        size_t px = 0, py = 0;
        for (size_t y = 0; y < 24; ++y) {
            for (size_t x = 0; x < 32; ++x) {
                if (map.at(k, y, x) > map.at(k, py, px)) px = x, py = y;
            }
        }
        const std::vector<bool> blob = blob_of(map, k, py, px, threshold);
        double sum = 0, x = 0, y = 0;
        for (size_t i = 0; i < blob.size(); ++i) {
            const double value = blob[i] ? map.at(k, i / 32, i % 32) : 0;
            sum += value, x += value * double(i % 32), y += value * double(i / 32);
        }
        most = std::max(most, static_cast<size_t>(std::ranges::count(blob, true)));
        EXPECT_NEAR(decoded.keypoints[k].x, x / sum * 4, 1e-3);
        EXPECT_NEAR(decoded.keypoints[k].y, y / sum * 4, 1e-3);
        EXPECT_EQ(decoded.keypoints[k].score, map.at(k, py, px));
        EXPECT_TRUE(decoded.keypoints[k].visible);
    }
    EXPECT_GT(most, 20u);
}

TEST(Heatmaps, CentroidsLieBetweenCellsAndPassOverOtherBlobs) {
    RefMap map(2, 24, 32);
    const auto bump = [&](size_t k, double cx, double cy, double height) {
        for (size_t y = 0; y < 24; ++y) {
            for (size_t x = 0; x < 32; ++x) {
                const double dx = double(x) - cx, dy = double(y) - cy;
                map.at(k, y, x) += static_cast<float>(height * std::exp(-(dx * dx + dy * dy) / 8));
            }
        }
    };
    bump(0, 10.4, 7.7, 0.9), bump(0, 25, 18, 0.8);  // a second person
    bump(1, 20.1, 11.3, 0.2);                       // nowhere over the threshold
    ModelInfo info;
    info.peak = "centroid";
    const Decoded decoded = decode_tensors({stored_map(map, "out", MapView::nchw)}, info, width,
                                           height, {.decoder = "heatmap", .score_threshold = 0.3});
    EXPECT_NEAR(decoded.keypoints[0].x, 10.4 * 4, 0.4);  // a tenth of a cell
    EXPECT_NEAR(decoded.keypoints[0].y, 7.7 * 4, 0.4);
    EXPECT_TRUE(decoded.keypoints[0].visible);
    EXPECT_EQ(decoded.keypoints[1].x, 20 * 4);
    EXPECT_FALSE(decoded.keypoints[1].visible);
}

TEST(Heatmaps, WithOffsetsHaveNoCentroids) {
    RefMap map(2, 12, 16), moves(4, 12, 16);
    const StoredTensor maps = stored_map(map, "heat", MapView::nchw),
                       offsets = stored_map(moves, "move", MapView::nchw);
    const TensorInfo infos[] = {maps.info, offsets.info};
    ModelInfo info;
    info.peak = "centroid";
    info.outputs = {{.name = "heat", .id = "", .role = "heatmap"},
                    {.name = "move", .id = "", .role = "offsets"}};
    const auto decoder = Decoder::create(info, infos, width, height, {.decoder = "heatmap"});
    ASSERT_FALSE(decoder);
    EXPECT_NE(decoder.error().message.find("'move' says where points are, and so does"),
              std::string::npos)
        << decoder.error().message;
}

TEST(Heatmaps, WithoutAnyNumberAreNotVisible) {
    RefMap map(2, 24, 32);
    for (size_t i = 0; i < 24 * 32; ++i) map.data[i] = nan;
    map.at(1, 3, 4) = 0.8f;
    const StoredTensor tensor = stored_map(map, "out", MapView::nchw);
    const Decoded decoded = decode_tensors({tensor}, {}, width, height, {.decoder = "heatmap"});
    ASSERT_EQ(decoded.keypoints.size(), 2u);
    EXPECT_FALSE(decoded.keypoints[0].visible);
    EXPECT_TRUE(decoded.keypoints[1].visible);
    EXPECT_EQ(decoded.not_finite, 24u * 32u);
}

// ---- landmarks

StoredTensor vector_tensor(const char* name, const std::vector<float>& values,
                           std::vector<uint32_t> shape) {
    StoredTensor stored;
    stored.info.name = name;
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < shape.size(); ++i) order.push_back(i);
    stored.info.cpu = make_view(DataType::float32, Layout::GENERIC, std::move(shape), order);
    const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
    stored.bytes.assign(bytes, bytes + 4 * values.size());
    return stored;
}

struct LandmarkCase {
    const char* why;
    uint32_t points, values;
    std::vector<uint32_t> shape;
    float units;  // pixels per unit, x and y alike
    unsigned num_classes;
};
const LandmarkCase landmark_cases[] = {
    {"68 points of a face in pixels", 68, 2, {1, 136}, 1, 0},
    {"21 points of a hand with depth", 21, 3, {1, 63}, 1, 0},
    {"a face mesh of 468 points: its 1404 numbers also go by two", 468, 3, {1, 1404}, 1, 0},
    {"fractions of the input", 5, 2, {1, 10}, 0, 0},
    {"a table", 33, 3, {1, 33, 3}, 0, 0},
    {"14 points, which the sidecar says: 42 numbers also are 21 of two",
     14,
     3,
     {1, 42, 1, 1},
     1,
     14},
};
class LandmarkLists : public testing::TestWithParam<LandmarkCase> {};
TEST_P(LandmarkLists, AreReadAsPoints) {
    const LandmarkCase& c = GetParam();
    SCOPED_TRACE(c.why);
    std::mt19937 random(c.points);
    std::uniform_real_distribution<float> coordinate(0, c.units > 0 ? 90.f : 1.f);
    std::vector<float> values;
    for (uint32_t i = 0; i < c.points * c.values; ++i) values.push_back(coordinate(random));
    if (c.values == 3) values[2] = 1000;  // depth has units of its own
    ModelInfo info;
    if (c.num_classes) info.num_classes = c.num_classes;
    const Affine map{.a = 2, .b = 0, .c = 10, .d = 0, .e = 3, .f = 20};
    const Decoded decoded = decode_tensors({vector_tensor("out", values, c.shape)}, info, width,
                                           height, {.decoder = "landmarks"}, map, 1000, 1000);
    ASSERT_EQ(decoded.keypoints.size(), c.points);
    for (uint32_t k = 0; k < c.points; ++k) {
        const float x = values[k * c.values] * (c.units > 0 ? 1 : 128),
                    y = values[k * c.values + 1] * (c.units > 0 ? 1 : 96);
        EXPECT_NEAR(decoded.keypoints[k].x, 2 * x + 10, 1e-3);
        EXPECT_NEAR(decoded.keypoints[k].y, 3 * y + 20, 1e-3);
        EXPECT_TRUE(decoded.keypoints[k].visible);
    }
}
INSTANTIATE_TEST_SUITE_P(Table, LandmarkLists, testing::ValuesIn(landmark_cases));

TEST(Landmarks, AreThereOnlyWhenTheModelSaysSo) {
    const auto decode = [](float presence) {
        return decode_tensors({vector_tensor("points", std::vector<float>(42, 50), {1, 42}),
                               vector_tensor("hand_flag", {presence}, {1, 1}),
                               vector_tensor("handedness", {0.1f}, {1, 1})},
                              {}, width, height);
    };
    ASSERT_EQ(decode(0.9f).keypoints.size(), 21u);
    EXPECT_EQ(decode(0.9f).keypoints[0].score, 0.9f);
    EXPECT_TRUE(decode(0.4f).keypoints.empty());
    EXPECT_TRUE(decode(nan).keypoints.empty());
    EXPECT_EQ(decode(nan).not_finite, 1u);
}

// Ages and the like are no choice between classes.
TEST(Classes, AreThoseOfTheFirstVectorOfSeveralNumbers) {
    const StoredTensor age = vector_tensor("age", {34}, {1, 1}),
                       logits = vector_tensor("logits", {-1, 2, 7, 3}, {1, 4});
    const Decoded decoded =
        decode_tensors({age, logits}, {}, width, height, {.decoder = "classify"});
    ASSERT_EQ(decoded.classes.size(), 1u);
    EXPECT_EQ(decoded.classes[0].class_id, 2);
}

TEST(Landmarks, OfFewNumbersAreKnownByTheirNameAlone) {
    const auto family = [](const char* name, uint32_t numbers) {
        const StoredTensor list = vector_tensor(name, std::vector<float>(numbers), {1, numbers}),
                           one = vector_tensor("valence", {0.8f}, {1, 1}),
                           other = vector_tensor("arousal", {0.1f}, {1, 1});
        const TensorInfo infos[] = {list.info, one.info, other.info};
        const auto decoder = Decoder::create({}, infos, width, height, {});
        return decoder ? std::string(decoder->family()) : decoder.error().message;
    };
    EXPECT_NE(family("expression", 8).find("fit no decoder"), std::string::npos);
    EXPECT_NE(family("bbox", 4).find("fit no decoder"), std::string::npos);
    EXPECT_EQ(family("landmarks", 8), "landmarks");
    EXPECT_EQ(family("expression", 10), "landmarks");
}

// The outputs of MediaPipe's models as converters name them, in any order.
TEST(Landmarks, OfMediaPipeAreThereOnlyWhenTheirPresenceSaysSo) {
    const auto decode = [](float presence) {
        return decode_tensors({vector_tensor("Identity_2", {0.98f}, {1, 1}),
                               vector_tensor("Identity_1", {presence}, {1, 1}),
                               vector_tensor("Identity_3", std::vector<float>(63, 0.1f), {1, 63}),
                               vector_tensor("Identity", std::vector<float>(63, 50), {1, 63})},
                              {}, width, height);
    };
    ASSERT_EQ(decode(0.9f).keypoints.size(), 21u);
    EXPECT_EQ(decode(0.9f).keypoints[0].x, 50);
    EXPECT_EQ(decode(0.9f).keypoints[0].score, 0.9f);
    EXPECT_TRUE(decode(0.01f).keypoints.empty());
    // What is no score is its logit.
    EXPECT_TRUE(decode(-3).keypoints.empty());
    EXPECT_NEAR(decode(3).keypoints.at(0).score, 1 / (1 + std::exp(-3.)), 1e-6);
}

TEST(Landmarks, KeepThePlaceOfAPointThatIsNoNumber) {
    std::vector<float> values(136, 50);
    values[8] = inf;
    const Decoded decoded = decode_tensors({vector_tensor("points", values, {1, 136})}, {}, width,
                                           height, {.decoder = "landmarks"});
    ASSERT_EQ(decoded.keypoints.size(), 68u);
    EXPECT_FALSE(decoded.keypoints[4].visible);
    EXPECT_EQ(decoded.keypoints[5].x, 50);
    EXPECT_EQ(decoded.not_finite, 1u);
}

TEST(Skeletons, NameNoPointThatTheModelDoesNotHave) {
    RefMap map(17, 24, 32);
    const StoredTensor points = vector_tensor("out", std::vector<float>(42), {1, 42}),
                       maps = stored_map(map, "out", MapView::nchw),
                       faces = vector_tensor("out", std::vector<float>(756 * 16), {1, 756, 16});
    struct Case {
        const char* decoder;
        const StoredTensor& tensor;
        const char *fits, *does_not, *says;
    };
    const Case cases[] = {
        {"heatmap", maps, "coco17", "0-1;3-17", "names point 17, but the model has 17 points"},
        {"landmarks", points, "0-20", "0-21", "names point 21, but the model has 21 points"},
        {"landmarks", points, "coco17", "30-2;0-1", "names point 30, but"},
        {"yolo-face", faces, "0-4;1-2", "5-0", "the model has 5 points, from 0 to 4; correct"},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(c.decoder);
        const auto create = [&](const char* skeleton, DecodeFault* fault) {
            ModelInfo info;
            info.skeleton = skeleton;
            return Decoder::create(info, {&c.tensor.info, 1}, width, height, {.decoder = c.decoder},
                                   fault);
        };
        const auto good = create(c.fits, nullptr);
        EXPECT_TRUE(good) << good.error().message;
        DecodeFault fault;
        const auto bad = create(c.does_not, &fault);
        ASSERT_FALSE(bad);
        EXPECT_NE(bad.error().message.find(c.says), std::string::npos) << bad.error().message;
        EXPECT_EQ(fault.id, "dec-classes");
        EXPECT_EQ(fault.fix, "x-vartml-skeleton=…");
    }
}

// ---- embedding

TEST(Embeddings, HaveTheLengthOne) {
    std::mt19937 random(1);
    std::normal_distribution<float> number(0, 30);
    std::vector<float> values;
    double squares = 0;
    for (int i = 0; i < 256; ++i) {
        values.push_back(number(random));
        squares += double(values.back()) * values.back();
    }
    for (const auto& shape : {std::vector<uint32_t>{1, 256}, std::vector<uint32_t>{1, 256, 1, 1}}) {
        const Decoded decoded = decode_tensors({vector_tensor("out", values, shape)}, {}, width,
                                               height, {.decoder = "embedding"});
        ASSERT_EQ(decoded.embedding.size(), 256u);
        for (size_t i = 0; i < 256; ++i) {
            EXPECT_NEAR(decoded.embedding[i], values[i] / std::sqrt(squares), 1e-6);
        }
        EXPECT_TRUE(decoded.classes.empty());
    }
}

TEST(Embeddings, WithoutDirectionAreNone) {
    const auto decode = [](const std::vector<float>& values) {
        return decode_tensors({vector_tensor("out", values, {1, 4})}, {}, width, height,
                              {.decoder = "embedding"});
    };
    EXPECT_TRUE(decode({0, 0, 0, 0}).embedding.empty());
    EXPECT_TRUE(decode({1, nan, 0, inf}).embedding.empty());
    EXPECT_EQ(decode({1, nan, 0, inf}).not_finite, 2u);
}

TEST(Embeddings, AreKnownByTheirRole) {
    const StoredTensor tensor = vector_tensor("out", std::vector<float>(256, 1), {1, 256});
    ModelInfo info;
    info.outputs = {{.name = "out", .id = "", .role = "embedding"}};
    auto decoder = Decoder::create(info, {&tensor.info, 1}, width, height, {});
    ASSERT_TRUE(decoder) << decoder.error().message;
    EXPECT_EQ(decoder->family(), "embedding");
}

}  // namespace
