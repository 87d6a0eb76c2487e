// SPDX-License-Identifier: Apache-2.0
#include "lib/common/nearest.h"

#include <algorithm>
#include <vector>

namespace vartml {
namespace {

// given: Levenshtein distance, one row at a time
size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row[b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known) {
    constexpr size_t near = 3;
    // A name much longer than ours cannot be near one, and would take long to compare.
    constexpr size_t longest = 64;
    if (name.size() > longest) return {};
    size_t best = near + 1;
    std::string_view nearest;
    for (const std::string_view candidate : known) {
        const size_t distance = edit_distance(name, candidate);
        if (distance < best) best = distance, nearest = candidate;
    }
    return nearest;
}

}  // namespace vartml
