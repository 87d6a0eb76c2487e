// SPDX-License-Identifier: Apache-2.0
// Which code the kernels choose on this processor.
#pragma once
#include <cstdint>

namespace vartml::kernels {

// The instruction sets that the processor has, a bit each: what is packed for one set of them is of
// no use to another.
int64_t instruction_sets();

}  // namespace vartml::kernels
