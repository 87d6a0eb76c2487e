// SPDX-License-Identifier: Apache-2.0
// Where the elements of a value lie: a buffer, an offset and a stride per logical dimension.
// Transpose, Slice, Split and most Reshapes only change the view; no byte moves.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include <vartml/tensor.h>

namespace vartml::softnpu {

using Dims = std::vector<int64_t>;

struct View {
    int32_t buffer = -1;
    DataType type = DataType::unknown;
    int64_t offset = 0;  // elements
    Dims dims;           // logical (ONNX) shape
    Dims strides;        // elements
    int64_t elements() const;
    bool operator==(const View&) const = default;
};

// Dimensions from the outermost to the innermost in memory.
using Order = std::vector<int32_t>;
Order row_major(size_t rank);
Order channels_last(size_t rank);  // [0, 2, 3, …, 1]; row_major below rank 3

// Strides of a dense tensor whose dimensions are nested in `order`.
Dims dense_strides(const Dims& dims, const Order& order);

// Order of the dimensions by falling stride; dimensions of size 1 come first.
Order order_of(const View& view);

// Whether the elements fill a block without gaps in the given order (sizes of 1 have any stride).
bool is_dense(const View& view, const Order& order);

View transpose(const View& view, const std::vector<int64_t>& perm);
View slice(const View& view, size_t axis, int64_t start, int64_t size, int64_t step);
// The same elements with other dimensions, if strides can express it.
std::optional<View> reshape(const View& view, const Dims& dims);
// Strides 0 along dimensions that are broadcast to `dims`; the view's dims are right-aligned.
View broadcast(const View& view, const Dims& dims);

}  // namespace vartml::softnpu
