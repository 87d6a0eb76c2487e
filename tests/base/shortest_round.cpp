// SPDX-License-Identifier: Apache-2.0
#include "lib/base/shortest_round.h"

#include <gtest/gtest.h>

#include <atomic>

namespace {

// The clock counts work, and whoever reads it is late.
TEST(ShortestRound, IsNeverShorterThanItsWork) {
    for (const unsigned threads : {1u, 2u, 5u}) {
        std::atomic<unsigned> prepared = 0, worked = 0;
        const double shortest = vartml::shortest_round(
            threads, 20, [&](unsigned) { ++prepared; }, [&](unsigned) { ++worked; },
            [&] {
                for (int i = 0; i < 1000; ++i) std::this_thread::yield();
                return static_cast<double>(worked);
            });
        EXPECT_EQ(shortest, threads);
        EXPECT_EQ(prepared, threads);
        EXPECT_EQ(worked, 21 * threads) << "one round warms up";
    }
}

}  // namespace
