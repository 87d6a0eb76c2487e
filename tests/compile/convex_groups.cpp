// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace vartml::compiler {
namespace {

constexpr size_t no = no_group;

struct Case {
    const char* why;
    std::vector<Item> items;
    std::vector<size_t> groups;
    std::vector<size_t> order;  // of leaders
};
const Case cases[] = {
    {"nothing", {}, {}, {}},
    {"a chain is one", {{{}, true}, {{0}, true}, {{1}, true}}, {0, 0, 0}, {0}},
    {"what stays alone cuts a chain",
     {{{}, true}, {{0}, false}, {{1}, true}},
     {0, no, 1},
     {0, 1, 2}},
    {"neighbours without an edge join", {{{}, true}, {{}, true}, {{0, 1}, true}}, {0, 0, 0}, {0}},
    // 0 and 2 would wait for 1, which waits for 0.
    {"a path around one that stays alone",
     {{{}, true}, {{0}, false}, {{0, 1}, true}},
     {0, no, 1},
     {0, 1, 2}},
    // 3 reads the lone item, but nothing of the group does: all of the group runs behind it.
    {"a group may wait",
     {{{}, true}, {{}, false}, {{0}, true}, {{1, 2}, true}},
     {0, no, 0, 0},
     {1, 0}},
    {"what waits for a later group cannot enter an earlier one",
     {{{}, true},
      {{}, false},
      {{0}, false},
      {{2}, true},
      {{1}, true},
      {{3}, false},
      {{5, 4}, true}},
     {0, no, no, 1, 0, no, 2},
     {1, 0, 2, 3, 5, 6}},
    // The first group waits for none of those behind it.
    {"what cannot enter the first of three groups enters the second",
     {{{}, true}, {{0}, false}, {{1}, true}, {{2}, false}, {{3}, true}, {{0, 1}, true}},
     {0, no, 1, no, 2, 1},
     {0, 1, 2, 3, 4}},
};
TEST(ConvexGroups, AreAsLargeAsTheOrderAllows) {
    for (const Case& c : cases) {
        EXPECT_EQ(convex_groups(c.items), c.groups) << c.why;
        EXPECT_EQ(execution_order(c.items, c.groups), c.order) << c.why;
    }
}

// Random graphs: every group is convex, the groups can run one after the other, and no two of them
// could be one.
bool can_run(const std::vector<Item>& items, const std::vector<size_t>& groups) {
    std::set<size_t> leaders, seen;
    for (size_t i = 0; i < items.size(); ++i)
        if (groups[i] == no || seen.insert(groups[i]).second) leaders.insert(i);
    return execution_order(items, groups).size() == leaders.size();
}
TEST(ConvexGroups, HoldOnRandomGraphs) {
    std::mt19937 random(7);
    for (int round = 0; round < 200; ++round) {
        SCOPED_TRACE(round);
        std::vector<Item> items(5 + random() % 30);
        for (size_t i = 0; i < items.size(); ++i) {
            items[i].joins = random() % 3 != 0;
            for (size_t edges = random() % 3; i > 0 && edges > 0; --edges)
                items[i].before.push_back(i - 1 - random() % std::min<size_t>(i, 6));
        }
        const std::vector<size_t> groups = convex_groups(items);
        size_t count = 0;
        for (size_t i = 0; i < items.size(); ++i) {
            EXPECT_EQ(groups[i] == no, !items[i].joins);
            if (groups[i] != no) count = std::max(count, groups[i] + 1);
        }
        EXPECT_TRUE(can_run(items, groups));
        for (size_t a = 0; a < count; ++a)
            for (size_t b = a + 1; b < count; ++b) {
                std::vector<size_t> merged = groups;
                std::ranges::replace(merged, b, a);
                EXPECT_FALSE(can_run(items, merged)) << a << " and " << b;
            }
    }
}

}  // namespace
}  // namespace vartml::compiler
