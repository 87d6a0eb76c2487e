// SPDX-License-Identifier: Apache-2.0
// One number for many elements; what reductions and normalisation share.
#pragma once
#include <vector>

#include "lib/graph/typed.h"
#include "lib/graph/walk.h"

namespace vartml::cpu {

// The shape with size 1 along the axes.
inline Shape without_axes(Shape shape, std::span<const int64_t> axes) {
    for (const int64_t axis : axes) shape[static_cast<size_t>(axis)] = 1;
    return shape;
}

// f(x, i) for each element x, in the type that T is computed in, and the index i of the element of
// `kept`, to which the input's shape is reduced, that it belongs to.
template <typename T, typename F>
void for_each_with_group(const Array& input, const Shape& kept, F f) {
    const Runs<1> runs(input.shape, {kept});
    runs.for_each([&](int64_t at, const std::array<int64_t, 1>& groups) {
        const T* x = input.as<T>() + at;
        auto group = static_cast<size_t>(groups[0]);
        if (runs.step(0) == 0)
            for (int64_t i = 0; i < runs.length(); ++i) f(load(x[i]), group);
        else
            for (int64_t i = 0; i < runs.length(); ++i) f(load(x[i]), group++);
    });
}

// apply(… apply(apply(start, x0), x1) …) of each group, in row-major order.
template <typename T, typename Total, typename F>
std::vector<Total> accumulate(const Array& input, const Shape& kept, Total start, F apply) {
    std::vector<Total> totals(static_cast<size_t>(kept.elements()), start);
    for_each_with_group<T>(input, kept, [&](Work<T> x, size_t group) {
        totals[group] = apply(totals[group], static_cast<Total>(x));
    });
    return totals;
}

}  // namespace vartml::cpu
