// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace vartml::graph {
namespace {

TEST(MemoryPlan, ReusesMemoryOfBlocksThatAreNotAliveTogether) {
    // A chain: each block lives from its step to the next one.
    const auto plan = plan_memory({{100, 0, 1}, {200, 1, 2}, {100, 2, 3}}, 64);
    EXPECT_EQ(plan.offsets, (std::vector<size_t>{256, 0, 256}));
    EXPECT_EQ(plan.size_bytes, 384U);
}

TEST(MemoryPlan, UsesAGapThatFits) {
    // The third block is alive with the two ends only, and goes between them where the second was.
    const auto plan = plan_memory({{640, 0, 9}, {256, 0, 4}, {192, 0, 9}, {128, 5, 9}}, 64);
    EXPECT_EQ(plan.offsets, (std::vector<size_t>{0, 640, 896, 640}));
}

TEST(MemoryPlan, TakesEmptyListsAndEmptyBlocks) {
    EXPECT_EQ(plan_memory({}).size_bytes, 0U);
    EXPECT_EQ(plan_memory({{0, 0, 1}, {0, 0, 1}}).size_bytes, 0U);
}

TEST(MemoryPlan, NeverOverlapsBlocksThatAreAliveTogether) {
    std::mt19937 random(1);
    for (int round = 0; round < 50; ++round) {
        std::vector<Block> blocks(random() % 60);
        size_t sum = 0;
        for (Block& block : blocks) {
            block.size_bytes = random() % 1000;
            block.first = static_cast<int32_t>(random() % 20);
            block.last = block.first + static_cast<int32_t>(random() % 5);
            sum += (block.size_bytes + 63) / 64 * 64;
        }
        const auto plan = plan_memory(blocks, 64);
        EXPECT_LE(plan.size_bytes, sum);
        for (size_t a = 0; a < blocks.size(); ++a) {
            EXPECT_EQ(plan.offsets[a] % 64, 0U);
            EXPECT_LE(plan.offsets[a] + blocks[a].size_bytes, plan.size_bytes);
            for (size_t b = 0; b < a; ++b) {
                if (blocks[a].first > blocks[b].last || blocks[b].first > blocks[a].last) continue;
                const bool apart = plan.offsets[a] + blocks[a].size_bytes <= plan.offsets[b] ||
                                   plan.offsets[b] + blocks[b].size_bytes <= plan.offsets[a];
                EXPECT_TRUE(apart || !blocks[a].size_bytes || !blocks[b].size_bytes);
            }
        }
    }
}

}  // namespace
}  // namespace vartml::graph
