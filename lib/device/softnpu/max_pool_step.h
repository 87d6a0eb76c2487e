// SPDX-License-Identifier: Apache-2.0
// MaxPool of fp32 pictures by our own kernel.
#pragma once
#include "kernels/conv/max_pool.h"
#include "lib/device/softnpu/lowering.h"

namespace vartml::softnpu {

// `src` and `dst` are [N, C, H, W] with contiguous channels.
void emit_max_pool(Lowering& lowering, const graph::Node& node, const kernels::PoolShape& shape,
                   const View& src, const View& dst);

}  // namespace vartml::softnpu
