// SPDX-License-Identifier: Apache-2.0
// Walking over the indices of a tensor; what kernels share.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/cpu/array.h"

namespace vartml::cpu {

using Strides = std::array<int64_t, max_rank>;

// Elements from one to the next index along each axis, dense row-major.
Strides strides_of(const Shape& shape);
// The same for a tensor that broadcasts to `shape` by numpy's rule: 0 along the axes that repeat.
Strides broadcast_strides(const Shape& from, const Shape& shape);

// Walks all indices of a shape in row-major order, keeping the element offset under N sets of
// strides.
template <size_t N>
class Walk {
public:
    Walk(const Shape& shape, const std::array<Strides, N>& strides)
        : shape_(shape), strides_(strides) {}
    int64_t offset(size_t set = 0) const { return offsets_[set]; }
    int64_t index(size_t axis) const { return index_[axis]; }
    void next() {
        for (size_t axis = shape_.size(); axis-- > 0;) {
            const bool wraps = ++index_[axis] == shape_[axis];
            for (size_t set = 0; set < N; ++set)
                offsets_[set] += strides_[set][axis] * (wraps ? 1 - shape_[axis] : 1);
            if (!wraps) return;
            index_[axis] = 0;
        }
    }

private:
    Shape shape_;
    std::array<Strides, N> strides_;
    std::array<int64_t, max_rank> index_{};
    std::array<int64_t, N> offsets_{};
};

// A shape seen from one axis: outer * size * inner elements.
struct AxisView {
    int64_t outer = 1, size = 1, inner = 1;
};
AxisView around_axis(const Shape& shape, size_t axis);

}  // namespace vartml::cpu
