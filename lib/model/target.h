// SPDX-License-Identifier: Apache-2.0
// What a device can do, as data: the only thing that the compiler knows of a device. The data are
// the files of lib/model/targets.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>
#include <vartml/tensor.h>

#include "lib/base/file.h"
#include "lib/graph/graph.h"

namespace vartml::device {

// An operator of the IR that a device runs, and what of it.
struct OperatorRule {
    std::string kind;
    // Element types of its tensors: f float32, float16, bfloat16; q int8, uint8; i int16, int32,
    // int64; u uint16, uint32, uint64; b bool.
    std::string types;
    std::vector<int64_t> spatial;    // numbers of spatial dimensions; empty: any
    std::vector<int64_t> ranks;      // of the first input; empty: any
    std::vector<std::string> fixed;  // attributes that must be known, because the shape follows
    std::map<std::string, std::vector<std::string>> attributes;  // texts that are accepted
    std::string only;            // the one float type, "float32"; empty: all of `types`
    bool foldable_only = false;  // runs only where it folds away, so never as a node
};

struct Target {
    std::string device;      // name in configurations and reports: "softnpu"
    std::string title;       // what it is, for people
    std::string program;     // target of its programs: "softnpu-1"
    uint32_t columns = 0;    // columns, cores or quads on offer
    uint32_t footprint = 0;  // of one program
    size_t max_rank = 0;
    uint64_t memory_bytes = 0;   // limit for weights, arena and borders of one partition
    uint64_t on_chip_bytes = 0;  // of one program
    uint64_t bandwidth_bytes_per_second = 0;  // of the memory outside
    // Figures of the static cycle estimate, for the columns of one program.
    double clock_hz = 0;
    uint64_t macs_per_cycle = 0;          // multiply-accumulates
    uint64_t elements_per_cycle = 0;      // element-wise operations
    uint64_t bytes_per_cycle = 0;         // local memory
    std::vector<DataType> types;          // of tensors on the NPU
    std::vector<Layout> layouts;          // of HW views
    std::vector<OperatorRule> operators;  // sorted by kind
    // Every figure above is in one of these: the public source, or the names of our guesses.
    std::map<std::string, std::string> sources;
    std::vector<std::string> assumptions;
};

// Reads one device file; `operators` gives the text of the list that it names. Errors: bad_model
// naming the key.
Result<Target> parse_target(std::string_view text,
                            const std::map<std::string, std::string_view>& operators);

// All devices, sorted by name except that softnpu, the default, comes first.
std::span<const Target> all_targets();
// nullptr for a name that no target has.
const Target* find_target(std::string_view device);
std::vector<std::string_view> target_names();

// The letter of an element type in OperatorRule::types; '?' for one that no device takes.
char type_class(DataType type);

// Whether the target runs the operator at all, apart from types and attributes. `kind` is one part.
bool runs_operator(const Target& target, std::string_view kind);

// Why the target does not run a node of a graph with known types; codes as a report has them.
struct Unsupported {
    std::string_view code;
    std::string text;
};
std::optional<Unsupported> why_unsupported(const Target& target, const graph::Graph& graph,
                                           const graph::Node& node);

// The data files of lib/model/targets, as the build put them into the program.

// A device, or a list of operators that devices name; both are JSON objects.
std::span<const EmbeddedFile> target_files();

}  // namespace vartml::device
