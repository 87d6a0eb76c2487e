// SPDX-License-Identifier: Apache-2.0
// Softmax of fp32 rows by our own kernel.
#pragma once
#include "lib/device/softnpu/lowering.h"

namespace vartml::softnpu {

// `src` and `dst` hold `rows` rows of `count` elements, one behind the other.
void emit_softmax(Lowering& lowering, const graph::Node& node, const View& src, const View& dst,
                  int64_t rows, int64_t count);

}  // namespace vartml::softnpu
