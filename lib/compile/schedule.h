// SPDX-License-Identifier: Apache-2.0
// Where the values of a program lie and when its layers run, as far as the compiler can say without
// a device.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lib/graph/graph.h"
#include "lib/model/compiled_model.h"
#include "lib/model/target.h"

namespace vartml::compiler {

struct Arena {
    std::vector<uint64_t> offsets;  // per value; 0 for what does not lie in the arena
    uint64_t size_bytes = 0;
};
// Values between nodes share one arena; inputs, outputs and constants have places of their own.
Arena plan_arena(const graph::Graph& graph);

struct Schedule {
    std::vector<artifact::Layer> layers;  // one per node, back to back
    std::vector<int32_t> node_layers;
};
// A static estimate without memory stalls: each layer takes what its arithmetic or its reads and
// writes of local memory take, whichever is more, at the target's rates. `prefix` begins the names:
// "MLA_0/".
Schedule plan_layers(const graph::Graph& graph, const device::Target& target,
                     const std::string& prefix);

// What a layer of that node alone takes, by the same rule.
uint64_t estimate_cycles(const graph::Graph& graph, const graph::Node& node,
                         const device::Target& target);

// "conv2d_add_relu": the parts of a kind in lower snake case, convolutions with their number of
// spatial dimensions.
std::string layer_kind(const graph::Graph& graph, const graph::Node& node);

// Bytes of all constants, each rounded up to a multiple of 64.
uint64_t weight_bytes(const graph::Graph& graph);

}  // namespace vartml::compiler
