// SPDX-License-Identifier: Apache-2.0
#include "pipelines/apps/demo/scene.h"

#include <gtest/gtest.h>

namespace demo {
namespace {

// Codes are the only dark things over a light backdrop but for the decoys, which the test cannot
// tell from them.
Scene light_scene() {
    auto scene =
        Scene::create(Picture(Scene::kBackdropWidth, Scene::kBackdropHeight, {120, 230, 120}));
    EXPECT_TRUE(scene);
    return std::move(*scene);
}

bool dark(const Picture& picture, int x, int y) {
    const uint8_t* p = picture.at(x, y);
    return p[0] + p[1] + p[2] < 3 * 80;
}

TEST(DemoGeometry, PerspectiveGoesThereAndBack) {
    const Quad quad{{{10, 20}, {110, 30}, {90, 140}, {5, 100}}};
    const Homography map = unit_square_to(quad), back = map.inverse();
    const Point corners[4] = {{0, 0}, {1, 0}, {1, 1}, {0, 1}};
    for (size_t i = 0; i < 4; ++i) {
        const Point p = map(corners[i]), q = back(quad[i]);
        EXPECT_NEAR(p.x, quad[i].x, 1e-9);
        EXPECT_NEAR(p.y, quad[i].y, 1e-9);
        EXPECT_NEAR(q.x, corners[i].x, 1e-9);
        EXPECT_NEAR(q.y, corners[i].y, 1e-9);
    }
}

TEST(DemoGeometry, OverlapOfBoxes) {
    EXPECT_DOUBLE_EQ(iou({0, 0, 10, 10}, {0, 0, 10, 10}), 1);
    EXPECT_DOUBLE_EQ(iou({0, 0, 10, 10}, {5, 0, 15, 10}), 1.0 / 3);
    EXPECT_DOUBLE_EQ(iou({0, 0, 10, 10}, {10, 0, 20, 10}), 0);
}

TEST(DemoScene, SameNumberSameFrame) {
    const Scene scene = light_scene();
    Frame first, again;
    scene.render(77, first);
    scene.render(3, again);
    scene.render(77, again);
    EXPECT_EQ(first.picture.rgb, again.picture.rgb);
    ASSERT_EQ(first.codes.size(), again.codes.size());
}

TEST(DemoScene, InkOfACodeReachesEachSideOfItsKnownBox) {
    const Scene scene = light_scene();
    Frame frame;
    unsigned checked = 0;
    for (unsigned number = 0; number < 300; number += 25) {
        scene.render(number, frame);
        for (const KnownCode& code : frame.codes) {
            if (!code.counted) continue;
            Box ink{1e9, 1e9, 0, 0};
            for (int y = static_cast<int>(code.box.y0); y < code.box.y1; ++y) {
                for (int x = static_cast<int>(code.box.x0); x < code.box.x1; ++x) {
                    if (!dark(frame.picture, x, y)) continue;
                    ink = {std::min<double>(ink.x0, x), std::min<double>(ink.y0, y),
                           std::max<double>(ink.x1, x + 1), std::max<double>(ink.y1, y + 1)};
                }
            }
            // A corner without a finder pattern may be light: a quarter of the box is the most it
            // can take.
            EXPECT_GE(iou(ink, code.box), 0.75) << "frame " << number;
            ++checked;
        }
    }
    EXPECT_GE(checked, 20u);
}

TEST(DemoScene, CodesChangeSizeAndAreMostlyVisible) {
    const Scene scene = light_scene();
    Frame frame;
    double smallest = 1e9, largest = 0;
    unsigned counted = 0;
    for (unsigned number = 0; number < 300; number += 10) {
        scene.render(number, frame);
        for (const KnownCode& code : frame.codes) {
            if (!code.counted) continue;
            ++counted;
            smallest = std::min(smallest, code.box.x1 - code.box.x0);
            largest = std::max(largest, code.box.x1 - code.box.x0);
        }
    }
    EXPECT_GE(counted, 30u * 2);
    EXPECT_LT(smallest, 120);
    EXPECT_GT(largest, 240);
}

}  // namespace
}  // namespace demo
