// SPDX-License-Identifier: Apache-2.0
// How much memory a CPU partition may take, so that one absurd shape does not take the machine.
#pragma once
#include <cstdint>

namespace vartml::cpu {

// For weights, arena and tensors at the border of one partition, where the user says nothing else;
// also for what a node takes besides while it runs.
inline constexpr uint64_t memory_limit_bytes = uint64_t{2} << 30;

}  // namespace vartml::cpu
