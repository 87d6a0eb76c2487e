// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/tracker.h"

#include <gtest/gtest.h>

namespace {

using vartml::Detection;
using vartml::vision::BoxMotion;

Detection box(float x, float y, float w = 40, float h = 80) {
    return {.x0 = x - w / 2, .y0 = y - h / 2, .x1 = x + w / 2, .y1 = y + h / 2};
}
void expect_near(const Detection& a, const Detection& b, float pixels) {
    EXPECT_NEAR(a.x0, b.x0, pixels);
    EXPECT_NEAR(a.y0, b.y0, pixels);
    EXPECT_NEAR(a.x1, b.x1, pixels);
    EXPECT_NEAR(a.y1, b.y1, pixels);
}

TEST(BoxMotion, BeginsWhereItWasSeenAndStandsStill) {
    const BoxMotion motion(box(100, 50));
    expect_near(motion.expected(), box(100, 50), 1e-4f);
    expect_near(motion.expected(1), box(100, 50), 1e-4f);
}

TEST(BoxMotion, LearnsAVelocityWithinASecond) {
    BoxMotion motion(box(100, 50));
    for (int i = 1; i <= 30; ++i) {
        motion.pass(1. / 30);
        motion.see(box(100 + 4.f * static_cast<float>(i), 50 + 2.f * static_cast<float>(i)));
    }
    expect_near(motion.expected(), box(220, 110), 0.5f);
    expect_near(motion.expected(0.5), box(280, 140), 2);
}

TEST(BoxMotion, TimeInPartsIsTheSameTime) {
    BoxMotion at_once(box(100, 50)), in_parts(box(100, 50));
    at_once.pass(1. / 6);
    for (int i = 0; i < 5; ++i) in_parts.pass(1. / 30);
    at_once.see(box(115, 60));
    in_parts.see(box(115, 60));
    expect_near(at_once.expected(1), in_parts.expected(1), 1e-3f);
}

TEST(BoxMotion, FollowsTheSizeUntilItIsHeld) {
    BoxMotion motion(box(100, 50));
    for (int i = 1; i <= 30; ++i) {
        motion.pass(1. / 30);
        motion.see(box(100, 50, 40 - static_cast<float>(i), 80 - static_cast<float>(i)));
    }
    EXPECT_LT(motion.expected(0.3).x1 - motion.expected(0.3).x0, 6);
    EXPECT_EQ(motion.expected(5).x1 - motion.expected(5).x0, 1);  // never without area
    motion.hold_size();
    const Detection held = motion.expected(5);
    EXPECT_NEAR(held.x1 - held.x0, 10, 1.5);
    EXPECT_NEAR(held.y1 - held.y0, 50, 1.5);
}

TEST(BoxMotion, IsTheSameInOtherPixels) {
    BoxMotion before(box(100, 50)), always(box(200, 150, 80, 240));
    for (int i = 1; i <= 30; ++i) {
        if (i == 15) before.rescale(2, 3);
        for (BoxMotion* motion : {&before, &always}) motion->pass(1. / 30);
        const float x = 100 + 4.f * float(i), y = 50 + 2.f * float(i);
        before.see(i < 15 ? box(x, y) : box(2 * x, 3 * y, 80, 240));
        always.see(box(2 * x, 3 * y, 80, 240));
    }
    expect_near(before.expected(1), always.expected(1), 1);
}

}  // namespace
