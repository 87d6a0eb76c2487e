// SPDX-License-Identifier: Apache-2.0
// 1x1 convolutions in bf16 by our own kernel, where the processor multiplies bf16.
#pragma once
#include "lib/device/softnpu/lowering.h"

namespace vartml::softnpu {

bool runs_point_conv(const Lowering& lowering, const graph::Node& node);
Result<void> lower_point_conv(Lowering& lowering, const graph::Node& node);

}  // namespace vartml::softnpu
