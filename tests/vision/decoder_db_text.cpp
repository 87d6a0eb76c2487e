// SPDX-License-Identifier: Apache-2.0
// Lines of text drawn as a detector was trained to draw them come out where they were.
#include <gtest/gtest.h>

#include <numbers>

#include "tests/vision/map_tensors.h"

using namespace vartml;
using namespace vartml::test;

namespace {

constexpr uint32_t width = 320, height = 192;

struct Line {
    double cx, cy, width, height, angle;  // pixels, radians
};

// The part of a line that a detector draws: inside it by what unclipping adds. A rectangle that
// shrinks by d grows again by area' * 1.5 / perimeter' = d.
double shrunk_by(double w, double h) {
    double low = 0, high = std::min(w, h) / 2;
    for (int i = 0; i < 60; ++i) {
        const double d = (low + high) / 2, a = w - 2 * d, b = h - 2 * d;
        (a * b * 1.5 / (2 * (a + b)) > d ? low : high) = d;
    }
    return low;
}

RefMap draw(const std::vector<Line>& lines, uint32_t channels, uint32_t step) {
    RefMap map(channels, height / step, width / step);
    for (const Line& line : lines) {
        const double d = shrunk_by(line.width, line.height);
        const double c = std::cos(line.angle), s = std::sin(line.angle);
        for (size_t y = 0; y < map.height; ++y) {
            for (size_t x = 0; x < map.width; ++x) {
                const double dx = (static_cast<double>(x) + 0.5) * step - line.cx;
                const double dy = (static_cast<double>(y) + 0.5) * step - line.cy;
                const bool inside = std::abs(dx * c + dy * s) <= line.width / 2 - d &&
                                    std::abs(dy * c - dx * s) <= line.height / 2 - d;
                if (inside) map.at(0, y, x) = 0.9f;
            }
        }
    }
    return map;
}

struct Case {
    const char* why;
    std::vector<Line> lines;
    uint32_t channels = 1, step = 1;
};
const Case cases[] = {
    {"a line", {{160, 96, 120, 24, 0}}},
    {"two lines that nearly touch", {{160, 60, 200, 30, 0}, {160, 94, 200, 30, 0}}},
    {"a line that rises", {{160, 96, 140, 28, -0.35}}},
    {"a line that falls", {{150, 100, 140, 28, 0.6}}},
    {"beside a map of thresholds", {{100, 50, 90, 30, 0}, {230, 140, 80, 24, 0.2}}, 2},
    {"a map of a quarter of the size", {{160, 96, 200, 60, 0}}, 1, 4},
};

class DbText : public testing::TestWithParam<Case> {};

TEST_P(DbText, FindsTheLinesThatWereDrawn) {
    const Case& c = GetParam();
    // As probabilities, and as what becomes them by a sigmoid.
    for (const bool logits : {false, true}) {
        RefMap map = draw(c.lines, c.channels, c.step);
        ModelInfo info;
        if (logits) {
            info.outputs = {{.name = "map", .id = "", .role = "", .ends_in = "linear"}};
            for (float& v : map.data) v = v > 0 ? std::log(v / (1 - v)) : -6;
        }
        const auto tensor = stored_map(map, "map", MapView::nchw);
        const Decoded decoded =
            decode_tensors({tensor}, info, width, height, {.decoder = "db-text"});
        ASSERT_EQ(decoded.detections.size(), c.lines.size());
        for (const Line& line : c.lines) {
            const auto found =
                std::ranges::min_element(decoded.detections, {}, [&](const Detection& d) {
                    return std::hypot((d.x0 + d.x1) / 2 - line.cx, (d.y0 + d.y1) / 2 - line.cy);
                });
            const double near = 3.0 * c.step;
            EXPECT_NEAR((found->x0 + found->x1) / 2, line.cx, near);
            EXPECT_NEAR((found->y0 + found->y1) / 2, line.cy, near);
            EXPECT_NEAR(found->x1 - found->x0, line.width, 2 * near);
            EXPECT_NEAR(found->y1 - found->y0, line.height, 2 * near);
            EXPECT_NEAR(found->angle, line.angle, 0.05);
            EXPECT_GT(found->score, 0.75);
            EXPECT_LE(found->score, 0.91);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Lines, DbText, testing::ValuesIn(cases));

TEST(DbTextLine, OfLittleProbabilityOrOfTwoCellsIsNone) {
    RefMap map = draw({{160, 96, 120, 24, 0}}, 1, 1);
    for (float& value : map.data) value *= 0.5f;  // 0.45: above 0.3, below the score of 0.6
    map.at(0, 10, 10) = map.at(0, 10, 11) = 0.9f;
    const auto tensor = stored_map(map, "map", MapView::nchw);
    EXPECT_TRUE(
        decode_tensors({tensor}, {}, width, height, {.decoder = "db-text"}).detections.empty());
    EXPECT_EQ(
        decode_tensors({tensor}, {}, width, height, {.decoder = "db-text", .score_threshold = 0.4})
            .detections.size(),
        1u);
}

TEST(DbTextLine, IsCalledText) {
    RefMap map(1, height, width);
    const TensorInfo info = stored_map(map, "map", MapView::nchw).info;
    const auto decoder = Decoder::create({}, {&info, 1}, width, height, {.decoder = "db-text"});
    ASSERT_TRUE(decoder) << decoder.error().message;
    EXPECT_EQ(decoder->label(0), "text");
}

}  // namespace
