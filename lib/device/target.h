// SPDX-License-Identifier: Apache-2.0
// What a device can do, as data: the only thing that the compiler knows of a device.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/graph/graph.h"

namespace vartml::device {

struct Target {
    std::string_view device;   // name in configurations and reports: "softnpu"
    std::string_view program;  // target of its programs: "softnpu-1"
    uint32_t columns;          // on offer
    uint32_t footprint;        // columns of one program
    uint64_t memory_bytes;     // limit for weights and arena of one partition
    size_t max_rank;
    // Figures of the static cycle estimate. No public source gives them: assumptions, close to one
    // core of the machine that the project is measured on.
    double clock_hz;
    uint64_t macs_per_cycle;      // multiply-accumulates, all columns of a program
    uint64_t elements_per_cycle;  // element-wise operations
    uint64_t bytes_per_cycle;     // local memory
};

// nullptr for a name that no target has.
const Target* find_target(std::string_view device);
std::vector<std::string_view> target_names();

// Whether the target runs the operator at all, apart from types and attributes.
bool runs_operator(const Target& target, std::string_view kind);

// Why the target does not run a node of a graph with known types; codes as in the format document.
struct Unsupported {
    std::string_view code;
    std::string text;
};
std::optional<Unsupported> why_unsupported(const Target& target, const graph::Graph& graph,
                                           const graph::Node& node);

}  // namespace vartml::device
