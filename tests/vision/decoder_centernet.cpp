// SPDX-License-Identifier: Apache-2.0
// CenterNet against its published formula, in every view of its maps.
#include <gtest/gtest.h>

#include <limits>

#include "tests/vision/map_tensors.h"

using namespace vartml;
using namespace vartml::test;

namespace {

constexpr uint32_t width = 128, height = 96, columns = 32, rows = 24;

struct Maps {
    RefMap heat, sizes, offsets;
};

// Scores from 0 to 1 that no view takes the differences of, with objects at a few cells.
Maps make(unsigned seed, size_t classes = 5) {
    Maps m{random_map(classes, rows, columns, seed, 0, 0.2f),
           random_map(2, rows, columns, seed + 1, 1, 1.9f),
           random_map(2, rows, columns, seed + 2, 0, 0.99f)};
    std::mt19937 random(seed);
    for (int i = 0; i < 12; ++i) {
        const size_t k = random() % classes, y = random() % rows, x = random() % columns;
        for (size_t v = y - (y > 0); v <= y + 1 && v < rows; ++v)
            for (size_t u = x - (x > 0); u <= x + 1 && u < columns; ++u) m.heat.at(k, v, u) = 0.4f;
        m.heat.at(k, y, x) = 0.5f + 0.03125f * static_cast<float>(i);
    }
    return m;
}

// A cell is a centre where a 3x3 maximum filter leaves it as it is.
std::vector<RefBox> reference(const Maps& m, double threshold) {
    std::vector<RefBox> boxes;
    for (size_t k = 0; k < m.heat.channels; ++k)
        for (size_t y = 0; y < rows; ++y)
            for (size_t x = 0; x < columns; ++x) {
                float most = -HUGE_VALF;
                for (int v = -1; v <= 1; ++v)
                    for (int u = -1; u <= 1; ++u)
                        if (y + v < rows && x + u < columns)
                            most = std::max(most, m.heat.at(k, y + v, x + u));
                const double score = m.heat.at(k, y, x);
                if (score < most || score < threshold) continue;
                const double cx = (double(x) + m.offsets.at(0, y, x)) * width / columns;
                const double cy = (double(y) + m.offsets.at(1, y, x)) * height / rows;
                const double w = double{m.sizes.at(0, y, x)} * width / columns;
                const double h = double{m.sizes.at(1, y, x)} * height / rows;
                boxes.push_back({std::max(cx - w / 2, 0.0), std::max(cy - h / 2, 0.0),
                                 std::min<double>(cx + w / 2, width),
                                 std::min<double>(cy + h / 2, height), score, static_cast<int>(k)});
            }
    std::stable_sort(boxes.begin(), boxes.end(),
                     [](const RefBox& a, const RefBox& b) { return a.score > b.score; });
    return boxes;
}

std::vector<StoredTensor> stored(Maps& m, MapView view) {
    return {stored_map(m.heat, "hm", view), stored_map(m.sizes, "wh", view),
            stored_map(m.offsets, "reg", view)};
}

TEST(CenterNet, DecodesAsTheReferenceFromEveryView) {
    for (const MapView view : map_views) {
        for (unsigned seed = 1; seed <= 3; ++seed) {
            Maps m = make(seed);
            const auto tensors = stored(m, view);
            const auto want = reference(m, 0.45);
            EXPECT_GT(want.size(), 5u);
            const Decoded found =
                decode_tensors(tensors, {}, width, height, {.score_threshold = 0.45});
            ASSERT_EQ(found.detections.size(), want.size()) << static_cast<int>(view);
            for (size_t i = 0; i < want.size(); ++i) {
                const Detection& box = found.detections[i];
                EXPECT_NEAR(box.x0, want[i].x0, 1e-3) << i;
                EXPECT_NEAR(box.y0, want[i].y0, 1e-3) << i;
                EXPECT_NEAR(box.x1, want[i].x1, 1e-3) << i;
                EXPECT_NEAR(box.y1, want[i].y1, 1e-3) << i;
                EXPECT_NEAR(box.score, want[i].score, 1e-6) << i;
                EXPECT_EQ(box.class_id, want[i].class_id) << i;
            }
        }
    }
}

// Coarse numbers, as bf16 and int8 are, make equal neighbours.
TEST(CenterNet, FindsOneObjectOnAPlateau) {
    Maps m = make(5);
    std::ranges::fill(m.heat.data, 0.f);
    m.heat.at(0, 3, 4) = m.heat.at(0, 3, 5) = m.heat.at(0, 4, 4) = 0.9f;
    EXPECT_EQ(decode_tensors(stored(m, MapView::nchw), {}, width, height).detections.size(), 1u);
}

TEST(CenterNet, PutsASigmoidBehindSumsOfProducts) {
    Maps m = make(4), sums = m;
    for (float& v : sums.heat.data) v = std::log(std::max(v, 1e-6f) / (1 - v));
    const auto want = decode_tensors(stored(m, MapView::nchw), {}, width, height);
    ModelInfo info;
    info.outputs = {{.name = "hm", .id = "", .role = "", .ends_in = "product"}};
    const auto found = decode_tensors(stored(sums, MapView::nchw), info, width, height);
    ASSERT_FALSE(want.detections.empty());
    ASSERT_EQ(found.detections.size(), want.detections.size());
    for (size_t i = 0; i < want.detections.size(); ++i)
        EXPECT_NEAR(found.detections[i].score, want.detections[i].score, 1e-5);
}

TEST(CenterNet, IsKnownByNamesAndHasTheLabelsOfCoco) {
    Maps m = make(1, 80);
    std::vector<TensorInfo> infos;
    for (const StoredTensor& t : stored(m, MapView::nchw)) infos.push_back(t.info);
    const auto decoder = Decoder::create({}, infos, width, height, {});
    ASSERT_TRUE(decoder) << decoder.error().message;
    EXPECT_EQ(decoder->family(), "centernet");
    EXPECT_EQ(decoder->classes(), 80u);
    EXPECT_EQ(decoder->labels().front(), "person");
    // Names that say nothing: the sidecar has to.
    infos[1].name = "a", infos[2].name = "b";
    DecodeFault fault;
    EXPECT_FALSE(Decoder::create({}, infos, width, height, {.decoder = "centernet"}, &fault));
    EXPECT_EQ(fault.id, "dec-role");
    ModelInfo info;
    info.outputs = {{.name = "a", .id = "", .role = "boxes"},
                    {.name = "b", .id = "", .role = "offsets"}};
    EXPECT_TRUE(Decoder::create(info, infos, width, height, {.decoder = "centernet"}));
}

TEST(CenterNet, DropsAndCountsWhatIsNotFinite) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (const int which : {0, 1, 2}) {
        Maps m = make(2);
        RefMap& map = which == 0 ? m.heat : which == 1 ? m.sizes : m.offsets;
        std::ranges::fill(map.data, infinity);
        const Decoded decoded = decode_tensors(stored(m, MapView::nchw), {}, width, height);
        EXPECT_TRUE(decoded.detections.empty()) << which;
        EXPECT_GT(decoded.not_finite, 0u) << which;
    }
}

}  // namespace
