// SPDX-License-Identifier: Apache-2.0
#include "gst/fleet/capacity.h"

#include <gtest/gtest.h>

namespace {

using vartml::fleet::Capacity;

// Reports the same for so many seconds.
class Clock {
public:
    void pass(Capacity& capacity, int seconds, size_t cameras, double p95_ms) {
        for (int i = 0; i < seconds; ++i) capacity.report(cameras, p95_ms, now_ms_ += 1000);
    }

private:
    int64_t now_ms_ = 0;
};

TEST(Capacity, ThatIsGivenStays) {
    Capacity capacity(8);
    Clock().pass(capacity, 600, 8, 1e9);
    EXPECT_EQ(capacity.now(), 8u);
}

TEST(Capacity, FallsByOneBelowWhatIsThereWhileCamerasAreLate) {
    Capacity capacity(8, 100);
    Clock clock;
    clock.pass(capacity, 5, 6, 150);
    clock.pass(capacity, 1, 6, 90);  // a burst
    clock.pass(capacity, 10, 6, 150);
    EXPECT_EQ(capacity.now(), 8u);
    clock.pass(capacity, 1, 6, 150);
    EXPECT_EQ(capacity.now(), 5u);
    clock.pass(capacity, 11, 5, 150);
    EXPECT_EQ(capacity.now(), 4u);
}

TEST(Capacity, NeverFallsToNothing) {
    Capacity capacity(2, 100);
    Clock().pass(capacity, 600, 1, 1000);
    EXPECT_EQ(capacity.now(), 1u);
}

TEST(Capacity, ComesBackAfterAMinuteInWhichAllWereEarly) {
    Capacity capacity(4, 100);
    Clock clock;
    clock.pass(capacity, 11, 4, 150);
    EXPECT_EQ(capacity.now(), 3u);
    clock.pass(capacity, 300, 3, 80);  // in time, but not early
    EXPECT_EQ(capacity.now(), 3u);
    clock.pass(capacity, 300, 2, 10);  // it has fewer than it may have
    EXPECT_EQ(capacity.now(), 3u);
    clock.pass(capacity, 60, 3, 10);
    EXPECT_EQ(capacity.now(), 3u);
    clock.pass(capacity, 1, 3, 10);
    EXPECT_EQ(capacity.now(), 4u);
    clock.pass(capacity, 300, 4, 10);
    EXPECT_EQ(capacity.now(), 4u) << "not above what was measured";
}

}  // namespace
