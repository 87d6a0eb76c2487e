// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace vartml::graph {

MemoryPlan plan_memory(const std::vector<Block>& blocks, size_t alignment_bytes) {
    const auto align = [alignment_bytes](size_t bytes) {
        return (bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
    };
    std::vector<size_t> order(blocks.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::greater<>(),
                             [&](size_t i) { return blocks[i].size_bytes; });

    MemoryPlan plan;
    plan.offsets.assign(blocks.size(), 0);
    std::vector<size_t> placed;  // by offset
    for (const size_t index : order) {
        const Block& block = blocks[index];
        size_t offset = 0;
        for (const size_t other : placed) {
            const bool together =
                blocks[other].first <= block.last && block.first <= blocks[other].last;
            if (!together || blocks[other].size_bytes == 0) continue;
            if (offset + block.size_bytes <= plan.offsets[other]) break;
            offset = std::max(offset, align(plan.offsets[other] + blocks[other].size_bytes));
        }
        plan.offsets[index] = offset;
        plan.size_bytes = std::max(plan.size_bytes, align(offset + block.size_bytes));
        const auto before = [&](size_t a, size_t b) { return plan.offsets[a] < plan.offsets[b]; };
        placed.insert(std::upper_bound(placed.begin(), placed.end(), index, before), index);
    }
    return plan;
}

}  // namespace vartml::graph
