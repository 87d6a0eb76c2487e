// SPDX-License-Identifier: Apache-2.0
// Persons drawn into heat maps and part affinity fields come out of them again.
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "tests/vision/map_tensors.h"

using namespace vartml;
using namespace vartml::test;

namespace {

constexpr uint32_t width = 456, height = 256, cells_x = 57, cells_y = 32;

struct Place {
    float x, y;  // pixels of the input
};
// Nose, neck, right arm, left arm, right leg, left leg, eyes, ears of somebody who looks at us.
constexpr std::array<Place, 18> standing = {{{0, -88},
                                             {0, -64},
                                             {-24, -62},
                                             {-36, -30},
                                             {-40, 0},
                                             {24, -62},
                                             {36, -30},
                                             {40, 0},
                                             {-14, 8},
                                             {-16, 48},
                                             {-16, 88},
                                             {14, 8},
                                             {16, 48},
                                             {16, 88},
                                             {-8, -96},
                                             {8, -96},
                                             {-18, -92},
                                             {18, -92}}};
// given: the limbs of OpenPose's COCO model, with the channel of the x of their fields.
constexpr std::array<std::array<unsigned, 3>, 19> limbs = {{{1, 2, 12},
                                                            {1, 5, 20},
                                                            {2, 3, 14},
                                                            {3, 4, 16},
                                                            {5, 6, 22},
                                                            {6, 7, 24},
                                                            {1, 8, 0},
                                                            {8, 9, 2},
                                                            {9, 10, 4},
                                                            {1, 11, 6},
                                                            {11, 12, 8},
                                                            {12, 13, 10},
                                                            {1, 0, 28},
                                                            {0, 14, 30},
                                                            {14, 16, 34},
                                                            {0, 15, 32},
                                                            {15, 17, 36},
                                                            {2, 16, 18},
                                                            {5, 17, 26}}};

struct Body {
    Place centre;
    float scale = 1;
    std::vector<unsigned> hidden{};
    bool has(unsigned point) const { return std::ranges::find(hidden, point) == hidden.end(); }
    Place at(unsigned point) const {
        return {centre.x + scale * standing[point].x, centre.y + scale * standing[point].y};
    }
};

struct Drawn {
    RefMap heat{19, cells_y, cells_x}, fields{38, cells_y, cells_x};
};

// As the model was trained: a bell about each point, a unit vector within a cell of each limb.
Drawn draw(const std::vector<Body>& bodies) {
    Drawn drawn;
    const float cell_x = float{width} / cells_x, cell_y = float{height} / cells_y;
    for (const Body& body : bodies) {
        for (size_t y = 0; y < cells_y; ++y) {
            for (size_t x = 0; x < cells_x; ++x) {
                const Place p{(static_cast<float>(x) + 0.5f) * cell_x,
                              (static_cast<float>(y) + 0.5f) * cell_y};
                for (unsigned k = 0; k < 18; ++k) {
                    if (!body.has(k)) continue;
                    const Place at = body.at(k);
                    const float d = std::hypot(p.x - at.x, p.y - at.y);
                    float& value = drawn.heat.at(k, y, x);
                    value = std::max(value, 0.9f * std::exp(-d * d / (2 * 7 * 7)));
                }
                for (const auto& [from, to, channel] : limbs) {
                    if (!body.has(from) || !body.has(to)) continue;
                    const Place a = body.at(from), b = body.at(to);
                    const float length = std::hypot(b.x - a.x, b.y - a.y);
                    const float ux = (b.x - a.x) / length, uy = (b.y - a.y) / length;
                    const float along = (p.x - a.x) * ux + (p.y - a.y) * uy;
                    const float across = std::abs((p.y - a.y) * ux - (p.x - a.x) * uy);
                    if (along < -8 || along > length + 8 || across > 9) continue;
                    drawn.fields.at(channel, y, x) = ux;
                    drawn.fields.at(channel + 1, y, x) = uy;
                }
            }
        }
    }
    return drawn;
}

struct Case {
    const char* why;
    std::vector<Body> bodies;
};
const Case cases[] = {
    {"one person", {{{228, 128}}}},
    {"two side by side", {{{120, 128}}, {{330, 130}}}},
    {"a small one before a large one's legs", {{{150, 130}, 1.1f}, {{260, 150}, 0.6f}}},
    {"legs below the picture's edge are not there", {{{228, 140}, 1, {9, 10, 12, 13}}}},
    {"an arm that is hidden", {{{228, 128}, 1, {3, 4}}}},
};

class OpenPose : public testing::TestWithParam<Case> {};

TEST_P(OpenPose, FindsThePersonsThatWereDrawn) {
    for (const MapView view : map_views) {
        Drawn drawn = draw(GetParam().bodies);
        const std::vector<StoredTensor> tensors = {stored_map(drawn.fields, "pafs", view),
                                                   stored_map(drawn.heat, "heatmaps", view)};
        const Decoded decoded = decode_tensors(tensors, {}, width, height);
        ASSERT_EQ(decoded.detections.size(), GetParam().bodies.size());
        for (const Body& body : GetParam().bodies) {
            const auto nearest = std::ranges::min_element(
                decoded.detections, {},
                [&](const Detection& d) { return std::abs((d.x0 + d.x1) / 2 - body.centre.x); });
            ASSERT_EQ(nearest->keypoints, 18u);
            EXPECT_GT(nearest->score, 0.7);
            for (unsigned k = 0; k < 18; ++k) {
                const Keypoint& point = decoded.keypoints[nearest->first_keypoint + k];
                EXPECT_EQ(point.visible, body.has(k)) << k;
                if (!body.has(k)) continue;
                EXPECT_NEAR(point.x, body.at(k).x, 2.5) << k;
                EXPECT_NEAR(point.y, body.at(k).y, 2.5) << k;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Scenes, OpenPose, testing::ValuesIn(cases));

TEST(OpenPoseOutputs, MayBeOneTensorOrSeveralStages) {
    Drawn drawn = draw({{{228, 128}}});
    RefMap both(57, cells_y, cells_x), empty_heat(19, cells_y, cells_x),
        empty_fields(38, cells_y, cells_x);
    std::ranges::copy(drawn.heat.data, both.data.begin());
    std::ranges::copy(drawn.fields.data,
                      both.data.begin() + static_cast<ptrdiff_t>(drawn.heat.data.size()));
    EXPECT_EQ(decode_tensors({stored_map(both, "net_output", MapView::nchw)}, {}, width, height,
                             {.decoder = "openpose"})
                  .detections.size(),
              1u);
    const std::vector<StoredTensor> stages = {
        stored_map(empty_heat, "stage_0_heat", MapView::nchw),
        stored_map(empty_fields, "stage_0_paf", MapView::nchw),
        stored_map(drawn.heat, "stage_1_heat", MapView::nchw),
        stored_map(drawn.fields, "stage_1_paf", MapView::nchw)};
    EXPECT_EQ(decode_tensors(stages, {}, width, height).detections.size(), 1u);
}

// Ears and shoulders join head and body where the limb from neck to nose is not seen, or no neck.
TEST(OpenPoseOutputs, JoinTheHalvesOfAPerson) {
    const auto persons = [](Drawn drawn) {
        return decode_tensors({stored_map(drawn.fields, "pafs", MapView::nchw),
                               stored_map(drawn.heat, "heatmaps", MapView::nchw)},
                              {}, width, height);
    };
    Drawn drawn = draw({{{228, 128}}});
    for (size_t y = 0; y < cells_y; ++y)
        for (size_t x = 0; x < cells_x; ++x)
            drawn.fields.at(28, y, x) = drawn.fields.at(29, y, x) = 0;
    const Decoded whole = persons(drawn);
    ASSERT_EQ(whole.detections.size(), 1u);
    EXPECT_TRUE(std::ranges::all_of(whole.keypoints, &Keypoint::visible));
    EXPECT_EQ(persons(draw({{{228, 128}, 1, {1}}})).detections.size(), 3u);  // and two legs
}

TEST(OpenPoseOutputs, NameThePersonAndItsSkeleton) {
    Drawn drawn = draw({});
    const std::vector<TensorInfo> infos = {stored_map(drawn.heat, "heat", MapView::nchw).info,
                                           stored_map(drawn.fields, "pafs", MapView::nchw).info};
    const auto decoder = Decoder::create({}, infos, width, height, {});
    ASSERT_TRUE(decoder) << decoder.error().message;
    EXPECT_EQ(decoder->family(), "openpose");
    EXPECT_EQ(decoder->label(0), "person");
    EXPECT_EQ(decoder->skeleton(), "openpose18");
}

TEST(OpenPoseOutputs, OfOtherChannelsAreRefusedWithWhatWasFound) {
    RefMap heat(17, cells_y, cells_x);
    const TensorInfo info = stored_map(heat, "heat", MapView::nchw).info;
    const auto decoder = Decoder::create({}, {&info, 1}, width, height, {.decoder = "openpose"});
    ASSERT_FALSE(decoder);
    EXPECT_NE(decoder.error().message.find("found heat [1,17,32,57]"), std::string::npos)
        << decoder.error().message;
}

}  // namespace
