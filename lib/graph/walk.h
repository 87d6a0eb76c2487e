// SPDX-License-Identifier: Apache-2.0
// Walking over the indices of a tensor; what kernels share.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/graph/kernel.h"

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

// Loops over tensors that broadcast to one shape.

// A shape and N operands that broadcast to it, cut into runs of one length: in a run, each operand
// either advances with the output or stays at one element. Axes that all operands treat alike are
// one axis here, so that two tensors of the same shape are a single run.
template <size_t N>
class Runs {
public:
    Runs(const Shape& shape, const std::array<Shape, N>& operands) {
        std::array<Strides, N> strides;
        for (size_t i = 0; i < N; ++i) strides[i] = broadcast_strides(operands[i], shape);
        std::array<int64_t, max_rank> sizes{};  // merged axes, the innermost first
        std::array<Strides, N> merged{};
        size_t rank = 0;
        for (size_t axis = shape.size(); axis-- > 0;) {
            if (shape[axis] == 1) continue;
            bool merges = rank > 0;
            for (size_t i = 0; i < N && merges; ++i)
                merges = strides[i][axis] == merged[i][rank - 1] * sizes[rank - 1];
            if (merges) {
                sizes[rank - 1] *= shape[axis];
                continue;
            }
            for (size_t i = 0; i < N; ++i) merged[i][rank] = strides[i][axis];
            sizes[rank++] = shape[axis];
        }
        if (rank == 0) return;
        length_ = sizes[0];
        for (size_t i = 0; i < N; ++i) steps_[i] = merged[i][0];
        std::array<int64_t, max_rank> outer{};
        for (size_t axis = 1; axis < rank; ++axis) {
            outer[rank - 1 - axis] = sizes[axis];
            for (size_t i = 0; i < N; ++i) outer_strides_[i][rank - 1 - axis] = merged[i][axis];
        }
        outer_ = Shape(std::span<const int64_t>(outer.data(), rank - 1));
    }

    int64_t length() const { return length_; }
    // 1 where the operand advances within a run, 0 where it stays.
    int64_t step(size_t operand) const { return steps_[operand]; }

    // f(at, offsets): the first element of each run in the output and in the operands.
    template <typename F>
    void for_each(F&& f) const {
        const int64_t runs = length_ == 0 ? 0 : outer_.elements();
        Walk<N> walk(outer_, outer_strides_);
        for (int64_t run = 0; run < runs; ++run, walk.next()) {
            std::array<int64_t, N> offsets;
            for (size_t i = 0; i < N; ++i) offsets[i] = walk.offset(i);
            f(run * length_, offsets);
        }
    }

private:
    int64_t length_ = 1;
    std::array<int64_t, N> steps_{};
    Shape outer_;
    std::array<Strides, N> outer_strides_{};
};

}  // namespace vartml::cpu
