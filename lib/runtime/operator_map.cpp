// SPDX-License-Identifier: Apache-2.0
#include "lib/runtime/operator_map.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "lib/runtime/vart_errors.h"

namespace vartml::runtime {
namespace {

using profiling::Descriptor;
using profiling::Op;

const char* engine_of(const ProfiledPartition& partition) {
    return partition.is_cpu ? profiling::cpu_engine : profiling::npu_engine;
}

// Of core 0, which stands for all.
const profiling::Group* group_of(const Descriptor& descriptor, std::string_view engine,
                                 uint16_t& index) {
    if (descriptor.cores.empty()) return nullptr;
    const auto& groups = descriptor.cores[0].groups;
    const auto found = std::ranges::find_if(groups, [&](const profiling::Group& g) {
        return g.engine < descriptor.engines.size() && descriptor.engines[g.engine] == engine;
    });
    if (found == groups.end()) return nullptr;
    index = static_cast<uint16_t>(found - groups.begin());
    return &*found;
}

}  // namespace

OperatorMap::OperatorMap(const std::vector<ProfiledPartition>& partitions,
                         const Descriptor* descriptor) {
    if (descriptor) {
        add_groups(*descriptor);
        for (const auto& partition : partitions)
            partitions_.push_back(place(partition, *descriptor));
        return;
    }
    std::vector<const char*> engines;
    for (const auto& partition : partitions) {
        const char* const engine = engine_of(partition);
        const auto found = std::ranges::find(engines, engine);
        const auto group = static_cast<uint16_t>(found - engines.begin());
        if (found == engines.end()) {
            engines.push_back(engine);
            groups_.push_back({.engine = group, .num_ops = 0, .has_barrier = {}});
        }
        partitions_.push_back(
            {group, none, std::vector<int32_t>(partition.program.steps.size(), none)});
    }
    if (groups_.empty()) groups_.emplace_back();
}

void OperatorMap::add_groups(const Descriptor& descriptor) {
    for (const auto& core : descriptor.cores) {
        for (const profiling::Group& group : core.groups) {
            Group own{.engine = static_cast<uint16_t>(group.engine),
                      .num_ops = group.ops.size(),
                      .has_barrier = std::vector<bool>(group.ops.size(), false)};
            for (size_t i = 0; i + 1 < group.ops.size(); ++i)
                own.has_barrier[i] = descriptor.is_barrier(group.ops[i + 1]);
            groups_.push_back(std::move(own));
        }
        break;  // core 0 stands for all
    }
    if (groups_.empty()) groups_.emplace_back();
}

OperatorMap::Partition OperatorMap::place(const ProfiledPartition& partition,
                                          const Descriptor& descriptor) {
    const auto& [name, steps] = partition.program;
    Partition own;
    own.op_of_step.assign(steps.size(), none);
    const profiling::Group* const group = group_of(descriptor, engine_of(partition), own.group);
    if (!group || group->ops.empty()) return own;
    std::unordered_map<std::string_view, int32_t> index_of;
    for (size_t i = 0; i < group->ops.size(); ++i) {
        const Op& op = group->ops[i];
        if (op.partition >= descriptor.partitions.size() ||
            descriptor.partitions[op.partition] != name)
            continue;
        if (descriptor.is_sync(op))
            own.sync = static_cast<int32_t>(i);
        else if (!descriptor.is_barrier(op))
            index_of.emplace(op.name, static_cast<int32_t>(i));
    }
    size_t unknown = 0;
    for (size_t s = 0; s < steps.size(); ++s) {
        const auto found = index_of.find(steps[s]);
        if (found != index_of.end()) {
            own.op_of_step[s] = found->second;
            continue;
        }
        if (++unknown == 1 && unknown_.empty())
            unknown_ = "the descriptor lists no operator for " + in_quotes(steps[s]) +
                       " of partition " + in_quotes(name) + "; compile the model again";
    }
    return own;
}

}  // namespace vartml::runtime
