// SPDX-License-Identifier: Apache-2.0
// Places blocks with known lifetimes in one arena.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vartml::graph {

// Used in steps first…last, both included.
struct Block {
    size_t size_bytes = 0;
    int32_t first = 0, last = 0;
};
struct MemoryPlan {
    std::vector<size_t> offsets;  // per block, multiples of the alignment
    size_t size_bytes = 0;        // of the arena
};

// Greedy by size: the largest block first, each at the lowest offset where no block of an
// overlapping lifetime lies. Deterministic: equal sizes in the order given.
MemoryPlan plan_memory(const std::vector<Block>& blocks, size_t alignment_bytes = 64);

}  // namespace vartml::graph
