// SPDX-License-Identifier: Apache-2.0
// The largest or smallest element of a whole tensor, shared out among threads.
#pragma once
#include <string_view>

#include "kernels/ops/elementwise.h"
#include "lib/device/softnpu/lowering.h"

namespace vartml::softnpu {

// dst[0] = max or min of all elements of src, f32 and dense; NaN where one is NaN.
void lower_extreme(Lowering& lowering, kernels::Binary op, const View& src, const View& dst,
                   std::string_view name);

}  // namespace vartml::softnpu
