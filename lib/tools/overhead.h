// SPDX-License-Identifier: Apache-2.0
// What recording costs, from pairs of blocks with and without it.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace vartml::tools {

inline constexpr size_t least_overhead_pairs = 20;
inline constexpr double overhead_budget_percent = 2;

// The two order statistics around the median that hold it with at least 95 %, whatever the
// distribution: binomial tails of a fair coin. With fewer than 6 values the least and the largest.
struct MedianInterval {
    double median = 0, low = 0, high = 0;
};
MedianInterval median_interval(std::vector<double> values);

enum class OverheadVerdict { met, exceeded, inconclusive };

struct Overhead {
    unsigned level = 0;
    size_t pairs = 0;
    MedianInterval percent;
    double budget_percent = overhead_budget_percent;
    // Inconclusive where the interval spans the budget.
    OverheadVerdict verdict() const;
};

// "profiling overhead level 50: +0.4 % (median of 20 pairs, 95 % interval -0.1..+0.9), budget 2 %:
// met"
std::string overhead_text(const Overhead& overhead);

}  // namespace vartml::tools
