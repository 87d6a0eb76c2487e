// SPDX-License-Identifier: Apache-2.0
// The types that the elements of a float view may have, and the kernels' names of them.
#pragma once
#include <utility>

#include <vartml/tensor.h>

#include "kernels/types.h"

namespace vartml::softnpu {

// Calls f with a value of the element type; false where the type is no float of at most 32 bits.
template <typename F>
bool with_float(DataType type, F&& f) {
    switch (type) {
        case DataType::float32:
            f(float{});
            return true;
        case DataType::bf16:
            f(kernels::bf16{});
            return true;
        case DataType::fp16:
            f(kernels::fp16{});
            return true;
        default:
            return false;
    }
}

inline bool is_float(DataType type) {
    return with_float(type, [](auto) {});
}

}  // namespace vartml::softnpu
