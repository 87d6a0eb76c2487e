// SPDX-License-Identifier: Apache-2.0
// Where the time of one inference went, by the nodes of the ONNX file, in milliseconds.
#pragma once
#include <span>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/tools/opstats/buffer_file.h"
#include "lib/tools/opstats/summary.h"
#include "lib/trace/descriptor.h"

namespace vartml::profiling {

struct NodeRow {
    // Names in the ONNX file, with " + " between those that became one operator; in parentheses
    // what belongs to no node: "(conversion at the border)", "(between operators)", "(on the
    // host)".
    std::string name;
    std::string kind;    // of the operator; "" of what is none
    std::string engine;  // "SNPU", "CPU"; the same
    Real ms, percent, gops_per_s;
};
std::span<const Column<NodeRow>> node_columns();

struct NodeTable {
    std::vector<NodeRow> rows;  // the longest first; their times add up to ms
    double ms = 0;              // from the call to the result
    uint32_t batch = 1;         // frames of one call
    size_t inferences = 0;      // that were recorded, of which this is the median one
};

// Of a buffer with operators. Errors: io.
Result<NodeTable> build_nodes(const BufferFile& file, const Descriptor& descriptor);

}  // namespace vartml::profiling
