// SPDX-License-Identifier: Apache-2.0
// Bytes that the operators of a model read and write, computed from the sizes of their tensors.
#pragma once
#include <cstdint>

#include "lib/graph/graph.h"
#include "lib/profiling/descriptor.h"

namespace vartml::runtime {

struct Traffic {
    uint64_t read_bytes = 0, write_bytes = 0;
};

// Of `batch` frames through the graph; constants are read once for all of them. For models whose
// descriptor lists no operators.
Traffic traffic_of(const graph::Graph& graph, uint64_t batch);

// Of all operators that the descriptor lists.
Traffic traffic_of(const profiling::Descriptor& descriptor);

}  // namespace vartml::runtime
