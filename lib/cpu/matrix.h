// SPDX-License-Identifier: Apache-2.0
// Products of stacks of matrices by numpy's rule.
#pragma once
#include "lib/cpu/products.h"
#include "lib/cpu/walk.h"

namespace vartml::cpu {

// y += a * b. The leading axes broadcast; a vector is a row on the left and a column on the right.
template <typename T>
void multiply(const Shape& a_shape, const T* a, const Shape& b_shape, const T* b, T* y) {
    const auto outer_of = [](const Shape& shape) {
        return Shape(
            std::span<const int64_t>(shape).first(shape.size() < 2 ? 0 : shape.size() - 2));
    };
    const bool column = b_shape.size() == 1;
    const int64_t depth = a_shape.back(), columns = column ? 1 : b_shape.back();
    const Shape left = outer_of(a_shape), right = outer_of(b_shape);
    int64_t rows = a_shape.size() == 1 ? 1 : a_shape[a_shape.size() - 2];
    if (right.elements() == 1 && left.size() >= right.size()) {
        // One matrix on the right: the rows of all on the left.
        rows *= left.elements();
        return add_product(rows, columns, depth, a, depth, b, columns, y, columns);
    }
    const Shape& longer = left.size() >= right.size() ? left : right;
    const Shape& shorter = left.size() >= right.size() ? right : left;
    Shape outer = longer;
    for (size_t i = 0; i < shorter.size(); ++i) {
        int64_t& size = outer[outer.size() - shorter.size() + i];
        if (shorter[i] != 1) size = shorter[i];
    }
    Walk<2> walk(outer, {broadcast_strides(left, outer), broadcast_strides(right, outer)});
    for (int64_t i = 0; i < outer.elements(); ++i, walk.next())
        add_product(rows, columns, depth, a + walk.offset(0) * rows * depth, depth,
                    b + walk.offset(1) * depth * columns, columns, y + i * rows * columns, columns);
}

}  // namespace vartml::cpu
