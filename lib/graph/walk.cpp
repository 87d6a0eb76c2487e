// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/walk.h"

namespace vartml::cpu {

Strides strides_of(const Shape& shape) {
    Strides strides{};
    int64_t stride = 1;
    for (size_t i = shape.size(); i-- > 0;) {
        strides[i] = stride;
        stride *= shape[i];
    }
    return strides;
}

Strides broadcast_strides(const Shape& from, const Shape& shape) {
    const Strides dense = strides_of(from);
    Strides strides{};
    const size_t shift = shape.size() - from.size();
    for (size_t i = 0; i < from.size(); ++i) strides[shift + i] = from[i] == 1 ? 0 : dense[i];
    return strides;
}

AxisView around_axis(const Shape& shape, size_t axis) {
    AxisView view;
    for (size_t i = 0; i < shape.size(); ++i)
        (i < axis ? view.outer : i == axis ? view.size : view.inner) *= shape[i];
    return view;
}

}  // namespace vartml::cpu
