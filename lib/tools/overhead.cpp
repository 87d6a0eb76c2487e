// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/overhead.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace vartml::tools {

MedianInterval median_interval(std::vector<double> values) {
    if (values.empty()) return {};
    std::ranges::sort(values);
    const size_t n = values.size();
    // The largest number of values that may be cut off at each end: P(Bin(n, 1/2) <= cut - 1) is at
    // most 2.5 %.
    size_t cut = 0;
    double term = std::pow(0.5, static_cast<double>(n)), tail = term;
    while (tail <= 0.025 && 2 * (cut + 1) < n) {
        ++cut;
        term *= static_cast<double>(n - cut + 1) / static_cast<double>(cut);
        tail += term;
    }
    const size_t low = cut == 0 ? 0 : cut - 1;
    return {(values[(n - 1) / 2] + values[n / 2]) / 2, values[low], values[n - 1 - low]};
}

OverheadVerdict Overhead::verdict() const {
    if (percent.high <= budget_percent) return OverheadVerdict::met;
    return percent.low > budget_percent ? OverheadVerdict::exceeded : OverheadVerdict::inconclusive;
}

std::string overhead_text(const Overhead& o) {
    constexpr const char* words[] = {"met", "exceeded", "inconclusive"};
    char text[256];
    std::snprintf(text, sizeof text,
                  "profiling overhead level %u: %+.1f %% (median of %zu pairs, 95 %% interval "
                  "%+.1f..%+.1f), budget %g %%: %s\n",
                  o.level, o.percent.median, o.pairs, o.percent.low, o.percent.high,
                  o.budget_percent, words[static_cast<int>(o.verdict())]);
    return text;
}

}  // namespace vartml::tools
