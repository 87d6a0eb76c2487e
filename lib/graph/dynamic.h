// SPDX-License-Identifier: Apache-2.0
// Runs nodes whose shapes are known only when they run.
#pragma once
#include <cstdint>

#include "lib/graph/kernel.h"

namespace vartml::cpu {

// As run(), for a node that is late (graph/late.h) or reads tensors in their real shape: settles
// it, then runs the kernel. `call.outputs` have the upper bounds of their shapes and memory for
// them; they get their real shapes. Errors: also bad_model where an output would be larger than its
// bound. Allocates.
Result<void> run_dynamic(const Call& call);

// How much memory a CPU partition may take, so that one absurd shape does not take the machine.

// Where the user says nothing else. The same on every machine, so that a model compiles on all or
// on none: whether this one has the memory is seen when the model is loaded.

// For one tensor; also for what a node takes besides while it runs. A few bytes of a model can ask
// for any size.
inline constexpr uint64_t tensor_limit_bytes = uint64_t{2} << 30;
// For weights, arena and tensors at the border of one partition: networks on pictures of 4K have a
// few tensors of more than 1 GB each.
inline constexpr uint64_t memory_limit_bytes = uint64_t{8} << 30;

}  // namespace vartml::cpu
