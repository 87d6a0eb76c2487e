// SPDX-License-Identifier: Apache-2.0
// Finds the outputs of heads that give one tensor per thing they say of a position: scores, boxes,
// landmarks; for all positions, or one set of tensors per stride.
#pragma once
#include "lib/vision/head.h"

namespace vartml::vision {

// An output [1,rows,columns], or [rows,columns] as some exporters leave it.
struct Table {
    size_t rows = 0, columns = 0;
};
std::optional<Table> table_of(const TensorInfo& output);

// What a family wants of each position.
struct Column {
    std::string_view role;  // of the sidecar; "boxes" also goes by "offsets"
    size_t columns;         // 0: any number of at least 2
    bool optional = false;
    std::string_view hint{};  // part of the names of outputs, where shapes do not tell
};
constexpr size_t absent = ~size_t{0};
// Outputs of a run of positions, by index in the order of the columns wanted; `absent` for optional
// ones that are not there.
struct Part {
    size_t first = 0, rows = 0;  // positions
    std::vector<size_t> outputs;
};
// Positions of a stride; 0: of no stride in particular.
struct Rows {
    int stride;
    size_t rows;
};

// One part for all rows together where the outputs are that, else one part per element of `levels`.
// An output is told by its role, else by its shape; of columns that look alike the first output is
// the first one. Errors: dec-role (a column without output, or a role that does not fit its
// output), dec-positions (rows or x-vartml-stride that the input size does not give); `origin` says
// where the numbers of rows come from: "2 anchors per cell".
Result<std::vector<Part>> find_parts(const HeadRequest& request, std::span<const Column> wanted,
                                     std::span<const Rows> levels, const std::string& origin);
// Outputs in all parts.
size_t outputs_in(std::span<const Part> parts);

// dec-positions: `output` has other rows than the `expected`.
Error rows_error(const HeadRequest& request, const TensorInfo& output, size_t expected,
                 const std::string& origin);

// The role that the sidecar gives an output, or "".
std::string_view role_of(const HeadRequest& request, const TensorInfo& output);

}  // namespace vartml::vision
