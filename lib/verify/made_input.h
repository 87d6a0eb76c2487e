// SPDX-License-Identifier: Apache-2.0
// What a model is fed where nobody gives anything better: the same bytes in every run.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lib/verify/compare.h"

namespace vartml::verify {

// Where the sides of a picture are among dimensions, -1 for those without a number; `height` is 0
// where the tensor is no picture.
struct PictureAxes {
    size_t height = 0, width = 0, channels = 0;
};
PictureAxes picture_axes(const std::vector<int64_t>& shape);

// For a picture a scene of gradients, discs and a little noise, from 0 to 1 (integers: over 0 to
// 255); a tensor named like a size gets `side`; other floats are from -1 to 1, integers 0 or 1.
TensorData made_input(const std::string& name, DataType type, const std::vector<int64_t>& shape,
                      int64_t side);

}  // namespace vartml::verify
