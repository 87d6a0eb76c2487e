// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/assignment.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace {

using namespace vartml::vision;
constexpr int none = Assigner::none;

double sum_of(const std::vector<Candidacy>& pairs, const std::vector<int>& column_of_row) {
    double sum = 0;
    for (const Candidacy& pair : pairs) {
        if (column_of_row[pair.row] == static_cast<int>(pair.column)) sum += pair.overlap;
    }
    return sum;
}

// The largest sum, by trying everything.
double best_sum(size_t rows, size_t columns, const std::vector<Candidacy>& pairs) {
    std::vector<char> taken(columns);
    const std::function<double(uint32_t)> best = [&](uint32_t row) -> double {
        if (row == rows) return 0;
        double most = best(row + 1);
        for (const Candidacy& pair : pairs) {
            if (pair.row != row || taken[pair.column]) continue;
            taken[pair.column] = 1;
            most = std::max(most, double{pair.overlap} + best(row + 1));
            taken[pair.column] = 0;
        }
        return most;
    };
    return best(0);
}

TEST(Assignment, OptimalHasTheLargestSumOfAll) {
    std::mt19937 random(11);
    Assigner assigner;
    std::vector<int> taken;
    for (int round = 0; round < 3000; ++round) {
        const size_t rows = random() % 7, columns = random() % 7;
        const unsigned density = 1 + random() % 4;
        std::vector<Candidacy> pairs;
        for (uint32_t r = 0; r < rows; ++r) {
            for (uint32_t c = 0; c < columns; ++c) {
                // Few values, so that there are ties.
                if (random() % 4 < density)
                    pairs.push_back({r, c, static_cast<float>(1 + random() % 8) / 8});
            }
        }
        assigner.optimal(rows, columns, pairs, taken);
        ASSERT_EQ(taken.size(), rows);
        std::vector<char> used(columns);
        for (const int c : taken) {
            if (c == none) continue;
            ASSERT_LT(c, static_cast<int>(columns));
            ASSERT_FALSE(used[static_cast<size_t>(c)]++) << "round " << round;
        }
        ASSERT_NEAR(sum_of(pairs, taken), best_sum(rows, columns, pairs), 1e-4)
            << "round " << round;
    }
}

struct Case {
    const char* why;
    size_t rows, columns;
    std::vector<Candidacy> pairs;
    std::vector<int> optimal, greedy;
};
const Case cases[] = {
    {"nothing", 0, 0, {}, {}, {}},
    {"no pair", 2, 1, {}, {none, none}, {none, none}},
    {"greedy takes the largest, optimal the largest sum",
     2,
     2,
     {{0, 0, 0.9f}, {0, 1, 0.8f}, {1, 0, 0.7f}},
     {1, 0},
     {0, none}},
    {"one pair may be worth more than two",
     2,
     2,
     {{0, 0, 0.3f}, {0, 1, 0.9f}, {1, 1, 0.3f}},
     {1, none},
     {1, none}},
    {"a tie is the lower row's", 2, 1, {{0, 0, 0.5f}, {1, 0, 0.5f}}, {0, none}, {0, none}},
    {"also where it comes after a better one",
     3,
     2,
     {{0, 1, 0.5f}, {1, 1, 0.5f}, {2, 0, 0.9f}, {2, 1, 0.5f}},
     {1, none, 0},
     {1, none, 0}},
    {"and where the better one may take from either",
     3,
     2,
     {{0, 0, 0.5f}, {1, 1, 0.5f}, {2, 0, 0.9f}, {2, 1, 0.9f}},
     {0, none, 1},
     {none, 1, 0}},
    {"and the lower column's", 1, 2, {{0, 0, 0.5f}, {0, 1, 0.5f}}, {0}, {0}},
};

TEST(Assignment, FollowsItsRules) {
    Assigner assigner;
    std::vector<int> taken;
    for (const Case& c : cases) {
        assigner.optimal(c.rows, c.columns, c.pairs, taken);
        EXPECT_EQ(taken, c.optimal) << c.why;
        assigner.greedy(c.rows, c.columns, c.pairs, taken);
        EXPECT_EQ(taken, c.greedy) << c.why;
    }
}

}  // namespace
