// SPDX-License-Identifier: Apache-2.0
// Which operators of a model run on the NPU and which on the CPU: the partition policy.
//
// Everything is decided and counted on the graph as it was imported, before any pass changes it: an
// operator is what the model's author wrote.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/compile/onnx/import.h"
#include "lib/graph/graph.h"
#include "lib/model/compiled_model.h"
#include "lib/model/target.h"

namespace vartml::compiler {

// Nodes that run as one program.
struct Part {
    artifact::PartitionKind kind = artifact::PartitionKind::npu;
    std::vector<size_t> nodes;  // indices into the graph, ascending
    uint32_t operators = 0;     // ONNX nodes that they came from
    uint64_t ops = 0;
    bool onnxruntime = false;  // on the CPU: the operators that ONNX Runtime runs
    int32_t candidate = -1;    // number among the subgraphs that the NPU could run; -1 on the CPU
};

struct PartitionPolicy {
    double threshold_gops_percent = 20;  // a subgraph with a smaller share of the model stays out
    uint32_t max_subgraphs = 7;
    bool use_npu = true;    // false: every operator is excluded from the NPU
    bool cpu_parts = true;  // false: what is not on the NPU is in no part
    // Tries to compile a subgraph for the NPU; the reason where that fails, to be read behind the
    // subgraph's name: "needs 5 bytes of device memory, limit 4".
    std::function<std::optional<std::string>(const Part&)> compile;
};

struct Partitioning {
    std::vector<Part> parts;  // in execution order
    artifact::Count total, supported, offloaded;
    uint32_t compile_errors = 0, below_threshold = 0, above_max = 0;
    std::vector<artifact::Fallback> fallbacks;  // in the graph's order, partition = index of parts
};

// Joins the operators that the target supports into convex subgraphs, as large as possible, and
// rejects those that hold too few operations, that are too many, or that do not compile, each under
// the first of these rules; what is left makes CPU parts. Nodes of one ONNX node stay together.
// `origins` says what the ONNX nodes were, for the reports.
Partitioning partition(const graph::Graph& graph, const onnx::Origins& origins,
                       const device::Target& target, const PartitionPolicy& policy);

// Joins items of a directed acyclic graph into groups that can run one after the other.

struct Item {
    std::vector<size_t> before;  // items that it reads from, each with a smaller index
    bool joins = false;          // false: stays alone
};

inline constexpr size_t no_group = static_cast<size_t>(-1);

// The group of each item, no_group for those that stay alone. Groups are convex, and no two of them
// wait for each other: with each group as one item the graph still has no cycle. Items are taken in
// their order; each enters the first group that it may enter, which need not be one that it reads
// from, else it begins a new one. No two groups of the result could be one.
std::vector<size_t> convex_groups(const std::vector<Item>& items);

// An order in which the items can run once those of a group are one: the leaders (first items of
// groups, and items of no group), each after all that its group reads from, otherwise by index.
std::vector<size_t> execution_order(const std::vector<Item>& items,
                                    const std::vector<size_t>& groups);

// A part of a graph as a graph of its own.

// The nodes with these indices, ascending, under their names. Inputs: what they read of others and
// of the graph's inputs; outputs: what others read of them, and what the graph gives. Those at the
// border of `graph` come first, in its order, the others in that of their values. Constants go into
// every part that reads them; they share their bytes.
graph::Graph cut(const graph::Graph& graph, const std::vector<size_t>& nodes);

}  // namespace vartml::compiler
