// SPDX-License-Identifier: Apache-2.0
// Which row takes which column, by overlap: greedily, or with the largest sum.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vartml::vision {

// A pair that may be made.
struct Candidacy {
    uint32_t row, column;
    float overlap;  // > 0, at most 1
};

// Keeps its memory over calls. Thread-safety: none.
class Assigner {
public:
    static constexpr int none = -1;

    // Both fill column_of_row: the column of each row, or none. `pairs` are ordered by row, then by
    // column, each at most once. Equal choices go to the lower row, then to the lower column.
    //
    // The largest overlap of all, then the largest of what is left, ...
    void greedy(size_t rows, size_t columns, std::span<const Candidacy> pairs,
                std::vector<int>& column_of_row);
    // The largest sum of overlaps; rows and columns may stay alone. Shortest augmenting paths
    // (Jonker and Volgenant) over the pairs alone, in whole numbers: exact and the same everywhere.
    void optimal(size_t rows, size_t columns, std::span<const Candidacy> pairs,
                 std::vector<int>& column_of_row);

private:
    struct End {
        int column;      // a free column, or none
        uint32_t alone;  // then: the row that is left alone
        int64_t length;
    };
    void prepare(size_t rows, size_t columns, std::span<const Candidacy> pairs);
    End shortest_path(uint32_t row);
    void lower_prices(uint32_t row, int64_t length);
    void relax(uint32_t row, int64_t base);
    int nearest() const;

    std::vector<size_t> order_;  // greedy
    std::span<const Candidacy> pairs_;
    std::vector<size_t> first_;  // of each row's pairs, and the end
    std::vector<int64_t> cost_;  // of each pair, < 0
    std::vector<int64_t> row_price_, column_price_, distance_;
    std::vector<int> row_of_, column_of_;  // the assignment so far
    std::vector<uint32_t> from_;           // row before a column on its path
    std::vector<char> done_;               // columns of the tree
    std::vector<uint32_t> touched_;        // columns with a distance
};

}  // namespace vartml::vision
