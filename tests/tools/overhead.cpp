// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/run_report.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include <nlohmann/json.hpp>

namespace vartml::tools {
namespace {

std::vector<double> numbers_to(int n) {
    std::vector<double> values(static_cast<size_t>(n));
    std::iota(values.rbegin(), values.rend(), 1);
    return values;
}

// Ranks of the sign test: P(Bin(n, 1/2) < low) <= 2.5 %, any table of it.
TEST(MedianInterval, HasTheRanksOfTheSignTest) {
    struct Case {
        int n;
        double median, low, high;
    };
    const Case cases[] = {
        {1, 1, 1, 1},      {5, 3, 1, 5},    {6, 3.5, 1, 6},     {10, 5.5, 2, 9},
        {20, 10.5, 6, 15}, {25, 13, 8, 18}, {40, 20.5, 14, 27},
    };
    for (const Case& c : cases) {
        const MedianInterval found = median_interval(numbers_to(c.n));
        EXPECT_EQ(found.median, c.median) << c.n;
        EXPECT_EQ(found.low, c.low) << c.n;
        EXPECT_EQ(found.high, c.high) << c.n;
    }
}

TEST(Overhead, IsComparedWithTheBudgetByItsInterval) {
    struct Case {
        MedianInterval percent;
        OverheadVerdict want;
        const char* line;
    };
    const Case cases[] = {
        {{0.4, -0.1, 0.9},
         OverheadVerdict::met,
         "profiling overhead level 50: +0.4 % (median of 20 pairs, 95 % interval -0.1..+0.9), "
         "budget 2 %: met\n"},
        {{3.0, 2.1, 4.0},
         OverheadVerdict::exceeded,
         "profiling overhead level 50: +3.0 % (median of 20 pairs, 95 % interval +2.1..+4.0), "
         "budget 2 %: exceeded\n"},
        {{1.0, -3.0, 5.0},
         OverheadVerdict::inconclusive,
         "profiling overhead level 50: +1.0 % (median of 20 pairs, 95 % interval -3.0..+5.0), "
         "budget 2 %: inconclusive\n"},
    };
    for (const Case& c : cases) {
        const Overhead overhead{50, 20, c.percent};
        EXPECT_EQ(overhead.verdict(), c.want);
        EXPECT_EQ(overhead_text(overhead), c.line);
    }
}

TEST(Overhead, IsARowWithItsLimit) {
    RunMeasurement m;
    m.model = "net";
    const Overhead overhead{50, 20, {3.0, 2.1, 4.0}};
    const auto row = nlohmann::json::parse(json_text(m, overhead))["rows"][0];
    EXPECT_EQ(row["name"], "net/profiling_overhead_50");
    EXPECT_EQ(row["ours"], 3.0);
    EXPECT_EQ(row["limit"], 2.0);
    EXPECT_EQ(row["pass"], false);
    EXPECT_EQ(row["sense"], "max");
}

}  // namespace
}  // namespace vartml::tools
