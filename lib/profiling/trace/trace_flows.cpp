// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/trace/trace_flows.h"

#include <algorithm>
#include <numeric>

namespace vartml::profiling {
namespace {

std::vector<uint32_t> sorted_by(const Descriptor& descriptor, uint32_t Edge::* end) {
    std::vector<uint32_t> edges(descriptor.edges.size());
    std::iota(edges.begin(), edges.end(), 0);
    std::ranges::stable_sort(edges, {}, [&](uint32_t e) { return descriptor.edges[e].*end; });
    return edges;
}

std::span<const uint32_t> range(const Descriptor& descriptor, const std::vector<uint32_t>& sorted,
                                uint32_t Edge::* end, uint32_t op_id) {
    const auto at = std::ranges::equal_range(sorted, op_id, {},
                                             [&](uint32_t e) { return descriptor.edges[e].*end; });
    return {at.begin(), at.end()};
}

}  // namespace

FlowGraph::FlowGraph(const Descriptor& descriptor)
    : descriptor_(&descriptor),
      by_from_(sorted_by(descriptor, &Edge::from)),
      by_to_(sorted_by(descriptor, &Edge::to)) {
    for (const Core& core : descriptor.cores)
        for (uint32_t g = 0; g < core.groups.size(); ++g)
            for (uint32_t i = 0; i < core.groups[g].ops.size(); ++i)
                places_.push_back({core.groups[g].ops[i].id, g, i, core.index});
    std::ranges::stable_sort(places_, {}, &Place::id);
}

const FlowGraph::Place* FlowGraph::find(uint32_t op_id) const {
    const auto at = std::ranges::lower_bound(places_, op_id, {}, &Place::id);
    return at != places_.end() && at->id == op_id ? &*at : nullptr;
}

std::span<const uint32_t> FlowGraph::from(uint32_t op_id) const {
    return range(*descriptor_, by_from_, &Edge::from, op_id);
}

std::span<const uint32_t> FlowGraph::to(uint32_t op_id) const {
    return range(*descriptor_, by_to_, &Edge::to, op_id);
}

}  // namespace vartml::profiling
