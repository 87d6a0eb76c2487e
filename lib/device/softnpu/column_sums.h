// SPDX-License-Identifier: Apache-2.0
// Sums over the positions of fp32 tensors with channels last.
#pragma once
#include <string_view>

#include "lib/device/softnpu/lowering.h"

namespace vartml::softnpu {

// dst[n, c, 0] = scale · sum of src[n, c, …]; both [N, C, positions] with contiguous channels.
void lower_column_sums(Lowering& lowering, const View& src, float scale, const View& dst,
                       std::string_view name);

}  // namespace vartml::softnpu
