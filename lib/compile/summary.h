// SPDX-License-Identifier: Apache-2.0
// The report of a compile: final-vaiml-pass-summary.txt and .json.
#pragma once
#include <string>

#include "lib/graph/graph.h"
#include "lib/model/compiled_model.h"

namespace vartml::compiler {

// final-vaiml-pass-summary.txt: the lines that the format gives, then ours.
std::string summary_text(const artifact::CompiledModel& model);
std::string summary_json(const artifact::CompiledModel& model);

// The lines of the report that say which types a model and a device compute in.

struct DataTypes {
    std::string model;   // "float32", "int8 quantized", "float32 and int8 quantized" …
    std::string device;  // "bfloat16", "int8", "bfloat16 and int8" …
};

// By the matrix work and the quantised operators of an imported graph.
DataTypes name_data_types(const graph::Graph& graph, bool convert_floats);

}  // namespace vartml::compiler
