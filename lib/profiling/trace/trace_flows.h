// SPDX-License-Identifier: Apache-2.0
// Dependencies between operators as arrows of a trace. Both ends compute the same number, so that
// no table of what is written is needed.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "lib/profiling/descriptor.h"

namespace vartml::profiling {

// Where the operators of a descriptor are and which edges meet at them.
class FlowGraph {
public:
    struct Place {
        uint32_t id = 0, group = 0, index = 0;
        uint16_t core = 0;
    };
    explicit FlowGraph(const Descriptor& descriptor);
    const Place* find(uint32_t op_id) const;
    // Indices into Descriptor::edges.
    std::span<const uint32_t> from(uint32_t op_id) const;
    std::span<const uint32_t> to(uint32_t op_id) const;
    const Edge& edge(uint32_t index) const { return descriptor_->edges[index]; }

private:
    const Descriptor* descriptor_;
    std::vector<Place> places_;  // by id
    std::vector<uint32_t> by_from_, by_to_;
};

// For each operator of one core, the thread whose slice has its arrows.
class Carriers {
public:
    static constexpr uint16_t none = 0xffff;  // the operator is not in the trace
    void set(uint32_t group, uint32_t index, uint32_t count, uint16_t thread) {
        auto& threads = groups_[group];
        threads.resize(count, none);
        threads[index] = thread;
    }
    uint16_t at(uint32_t group, uint32_t index) const {
        const auto found = groups_.find(group);
        if (found == groups_.end() || index >= found->second.size()) return none;
        return found->second[index];
    }

private:
    std::map<uint32_t, std::vector<uint16_t>> groups_;
};

// Cores that run one instance of the descriptor together: those that it lists, or one more of their
// kind.
struct FlowJob {
    uint64_t ordinal = 0;                // unique in the trace
    std::map<uint16_t, Carriers> cores;  // by index in the descriptor
    bool is_written(const FlowGraph::Place& place) const {
        const auto core = cores.find(place.core);
        return core != cores.end() && core->second.at(place.group, place.index) != Carriers::none;
    }
    uint64_t id_of(uint32_t edge) const { return edge + (ordinal << 32); }
};

}  // namespace vartml::profiling
