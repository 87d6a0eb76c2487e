// SPDX-License-Identifier: Apache-2.0
#include "lib/runtime/traffic.h"

#include <set>

namespace vartml::runtime {

Traffic traffic_of(const graph::Graph& graph, uint64_t batch) {
    const auto bytes = [&](const std::vector<graph::ValueId>& ids) {
        uint64_t sum = 0;
        for (const graph::ValueId id : std::set(ids.begin(), ids.end())) {
            if (id == graph::none) continue;
            const graph::Value& value = graph.value(id);
            sum += value.type.size_bytes() * (value.constant ? 1 : batch);
        }
        return sum;
    };
    Traffic traffic;
    for (const graph::Node& node : graph.nodes) {
        traffic.read_bytes += bytes(node.inputs);
        traffic.write_bytes += bytes(node.outputs);
    }
    return traffic;
}

Traffic traffic_of(const profiling::Descriptor& descriptor) {
    Traffic traffic;
    if (descriptor.cores.empty()) return traffic;
    for (const profiling::Group& group : descriptor.cores[0].groups)
        for (const profiling::Op& op : group.ops) {
            traffic.read_bytes += op.read_bytes;
            traffic.write_bytes += op.write_bytes;
        }
    return traffic;
}

}  // namespace vartml::runtime
