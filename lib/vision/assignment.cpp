// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/assignment.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace vartml::vision {
namespace {

constexpr int64_t unreached = std::numeric_limits<int64_t>::max();
// Steps of an overlap. Rows below 2^20 keep costs below 2^62.
constexpr double steps = 1 << 20;

}  // namespace

void Assigner::greedy(size_t rows, size_t columns, std::span<const Candidacy> pairs,
                      std::vector<int>& column_of_row) {
    order_.resize(pairs.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    // Stable: pairs come by row and column.
    std::ranges::stable_sort(
        order_, [&](size_t a, size_t b) { return pairs[a].overlap > pairs[b].overlap; });
    column_of_row.assign(rows, none);
    done_.assign(columns, 0);
    for (const size_t i : order_) {
        const Candidacy& pair = pairs[i];
        if (column_of_row[pair.row] != none || done_[pair.column]) continue;
        column_of_row[pair.row] = static_cast<int>(pair.column);
        done_[pair.column] = 1;
    }
}

// Costs are negative overlaps in whole steps; below a step, rows in front cost less, so that a tie
// is theirs. A row alone costs 0.
void Assigner::prepare(size_t rows, size_t columns, std::span<const Candidacy> pairs) {
    pairs_ = pairs;
    const auto tie_steps = static_cast<int64_t>(rows * rows + 1);
    cost_.clear();
    first_.assign(rows + 1, 0);
    for (const Candidacy& pair : pairs) {
        const auto whole = std::max<int64_t>(1, std::llround(double{pair.overlap} * steps));
        cost_.push_back(-whole * tie_steps - static_cast<int64_t>(rows - pair.row));
        ++first_[pair.row + 1];
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    row_price_.assign(rows, 0);
    column_price_.assign(columns, 0);
    distance_.assign(columns, unreached);
    row_of_.assign(columns, none);
    column_of_.assign(rows, none);
    from_.assign(columns, 0);
    done_.assign(columns, 0);
    touched_.clear();
}

void Assigner::relax(uint32_t row, int64_t base) {
    for (size_t i = first_[row]; i < first_[row + 1]; ++i) {
        const uint32_t column = pairs_[i].column;
        const int64_t length = base + cost_[i] - row_price_[row] - column_price_[column];
        if (done_[column] || length >= distance_[column]) continue;
        if (distance_[column] == unreached) touched_.push_back(column);
        distance_[column] = length;
        from_[column] = row;
    }
}

int Assigner::nearest() const {
    int best = none;
    for (const uint32_t column : touched_) {
        if (done_[column]) continue;
        const auto index = static_cast<size_t>(best);
        if (best == none || distance_[column] < distance_[index] ||
            (distance_[column] == distance_[index] && static_cast<int>(column) < best)) {
            best = static_cast<int>(column);
        }
    }
    return best;
}

// Dijkstra from a row without column to a column without row, or to a row that gives its own up.
Assigner::End Assigner::shortest_path(uint32_t start) {
    int64_t& price = row_price_[start];
    price = 0;
    for (size_t i = first_[start]; i < first_[start + 1]; ++i) {
        price = std::min(price, cost_[i] - column_price_[pairs_[i].column]);
    }
    End alone{none, start, unreached};
    uint32_t row = start;
    int64_t base = 0;
    while (true) {
        if (base - row_price_[row] < alone.length) alone = {none, row, base - row_price_[row]};
        relax(row, base);
        const int column = nearest();
        if (column == none) return alone;
        const auto index = static_cast<size_t>(column);
        if (alone.length <= distance_[index]) return alone;
        if (row_of_[index] == none) return {column, 0, distance_[index]};
        done_[index] = 1;
        base = distance_[index];
        row = static_cast<uint32_t>(row_of_[index]);
    }
}

// Keeps every cost minus its prices at 0 or above, and at 0 on the assignment. Clears the tree.
void Assigner::lower_prices(uint32_t start, int64_t length) {
    row_price_[start] += length;
    for (const uint32_t column : touched_) {
        if (done_[column]) {
            column_price_[column] += distance_[column] - length;
            row_price_[static_cast<size_t>(row_of_[column])] += length - distance_[column];
        }
        distance_[column] = unreached;
        done_[column] = 0;
    }
    touched_.clear();
}

void Assigner::optimal(size_t rows, size_t columns, std::span<const Candidacy> pairs,
                       std::vector<int>& column_of_row) {
    prepare(rows, columns, pairs);
    for (uint32_t start = 0; start < rows; ++start) {
        const End end = shortest_path(start);
        lower_prices(start, end.length);
        int column = end.column != none ? end.column : std::exchange(column_of_[end.alone], none);
        // Each row on the path takes the column behind it.
        while (column != none) {
            const uint32_t row = from_[static_cast<size_t>(column)];
            row_of_[static_cast<size_t>(column)] = static_cast<int>(row);
            std::swap(column_of_[row], column);
        }
    }
    column_of_row = column_of_;
}

}  // namespace vartml::vision
