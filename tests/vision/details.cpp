// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/details.h"

#include <gtest/gtest.h>

using namespace vartml;
using namespace vartml::vision;

namespace {

constexpr Affine doubled{.a = 2, .b = 0, .c = 10, .d = 0, .e = 3, .f = -6};
constexpr FrameSize frame{100, 60};

TEST(MapDetails, AppendsKeypointsInTheOrderOfTheBoxes) {
    BoxDetails details;
    details.keypoints = {{1, 2, 0.9f, true}, {5, 4, 0.2f, true}, {0, 0, 0.9f, false}};
    Decoded decoded;
    decoded.keypoints.resize(4);  // of boxes before
    Detection detection;
    map_details(details, doubled, frame, 0.5f, detection, decoded);
    EXPECT_EQ(detection.first_keypoint, 4u);
    EXPECT_EQ(detection.keypoints, 3u);
    EXPECT_EQ(detection.mask, -1);
    ASSERT_EQ(decoded.keypoints.size(), 7u);
    EXPECT_EQ(decoded.keypoints[4].x, 12);
    EXPECT_EQ(decoded.keypoints[4].y, 0);
    EXPECT_TRUE(decoded.keypoints[4].visible);
    EXPECT_FALSE(decoded.keypoints[5].visible);  // below the threshold
    EXPECT_EQ(decoded.keypoints[5].score, 0.2f);
    EXPECT_FALSE(decoded.keypoints[6].visible);  // by the head
}

TEST(MapDetails, TurnsPointsWithTheFrame) {
    BoxDetails details;
    details.keypoints = {{3, 7}};
    Decoded decoded;
    Detection detection;
    map_details(details, {.a = 0, .b = -1, .c = 60, .d = 1, .e = 0, .f = 5}, frame, 0, detection,
                decoded);
    EXPECT_EQ(decoded.keypoints[0].x, 53);
    EXPECT_EQ(decoded.keypoints[0].y, 8);
}

struct MaskCase {
    const char* why;
    Mask mask;  // in model pixels
    Affine map;
    Mask want;  // in the frame; no cells: no mask
    std::vector<uint8_t> pixels;
};
// Cells of the small pictures are numbered from 0, row by row.
const MaskCase masks[] = {
    {"inside", {10, 10, 18, 14, 4, 2, 0}, {}, {10, 10, 18, 14, 4, 2, 0}, {0, 1, 2, 3, 4, 5, 6, 7}},
    {"scaled",
     {10, 10, 18, 14, 4, 2, 0},
     doubled,
     {30, 24, 46, 36, 4, 2, 0},
     {0, 1, 2, 3, 4, 5, 6, 7}},
    {"cells whose centres are left of the frame or below it are left out",
     {-3, 55, 5, 63, 4, 2, 0},
     {},
     {-1, 55, 5, 59, 3, 1, 0},
     {1, 2, 3}},
    {"a centre on the edge is inside",
     {-1, 58, 3, 62, 2, 2, 0},
     {},
     {-1, 58, 3, 60, 2, 1, 0},
     {0, 1}},
    {"outside", {-20, 10, -12, 14, 4, 2, 0}, {}, {}, {}},
};
class MapMasks : public testing::TestWithParam<MaskCase> {};
TEST_P(MapMasks, KeepTheirCells) {
    const MaskCase& c = GetParam();
    SCOPED_TRACE(c.why);
    std::vector<uint8_t> cells = {99, 99};  // of another mask
    for (uint8_t i = 0; i < 8; ++i) cells.push_back(i);
    Mask mask = c.mask;
    mask.first = 2;
    Decoded decoded;
    decoded.mask_pixels.resize(3);
    decoded.masks.resize(1);
    Detection detection;
    BoxDetails details;
    details.mask = mask, details.mask_pixels = cells;
    map_details(details, c.map, frame, 0, detection, decoded);
    Decoded picture;
    PictureDetails maps;
    maps.class_maps = {mask}, maps.mask_pixels = cells;
    map_picture(maps, c.map, frame, 0, picture);
    if (c.pixels.empty()) {
        EXPECT_EQ(detection.mask, -1);
        EXPECT_TRUE(picture.class_maps.empty());
        return;
    }
    ASSERT_EQ(detection.mask, 1);
    ASSERT_EQ(picture.class_maps.size(), 1u);
    EXPECT_EQ(decoded.masks[1].first, 3u);
    EXPECT_EQ(picture.class_maps[0].first, 0u);
    for (const Mask& found : {decoded.masks[1], picture.class_maps[0]}) {
        EXPECT_EQ(found.x0, c.want.x0);
        EXPECT_EQ(found.y0, c.want.y0);
        EXPECT_EQ(found.x1, c.want.x1);
        EXPECT_EQ(found.y1, c.want.y1);
        EXPECT_EQ(found.width, c.want.width);
        EXPECT_EQ(found.height, c.want.height);
    }
    EXPECT_EQ(picture.mask_pixels, c.pixels);
    EXPECT_TRUE(std::equal(c.pixels.begin(), c.pixels.end(), decoded.mask_pixels.begin() + 3,
                           decoded.mask_pixels.end()));
}
INSTANTIATE_TEST_SUITE_P(Table, MapMasks, testing::ValuesIn(masks));

}  // namespace
