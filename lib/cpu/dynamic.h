// SPDX-License-Identifier: Apache-2.0
// Runs nodes whose shapes are known only when they run.
#pragma once
#include "lib/cpu/kernel.h"

namespace vartml::cpu {

// As run(), for a node that is late (graph/late.h) or reads tensors in their real shape: settles
// it, then runs the kernel. `call.outputs` have the upper bounds of their shapes and memory for
// them; they get their real shapes. Errors: also bad_model where an output would be larger than its
// bound. Allocates.
Result<void> run_dynamic(const Call& call);

}  // namespace vartml::cpu
