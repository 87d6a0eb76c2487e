// SPDX-License-Identifier: Apache-2.0
// What a model gives by the plain loops of the operator table, node by node, and how far from it a
// right result may be.
//
// How far follows from the model itself: it is evaluated again and again while each float that an
// operator computes with is changed by a small part of itself, at random. What rounding does to a
// result is of that kind. Six times the largest change of an output that was seen is allowed.
// Operators that only move elements change nothing in f32: behind them alone, and of integers,
// every bit is compared.
#pragma once
#include <map>
#include <string>

#include <vartml/result.h>

#include "tests/fuzz_graphs/model.h"

namespace vartml::fuzz_graphs {

// The outputs of a node whose operands are all known, in their real shapes. Errors: those of the
// importer and of the kernels. `scratch` is a file that may be written.
Result<std::vector<TensorData>> evaluate(const pb::ModelProto& frame, const pb::NodeProto& node,
                                         const Values& values, const std::string& scratch);

enum class Precision { f32, bf16 };

// All tensors of the model.
struct Reference {
    Values values;
    std::map<std::string, double> tolerance;  // by output; 0: every bit
};
Result<Reference> evaluate(const Model& model, const std::string& scratch);
// Sets the tolerances; `trials` evaluations with changes that are `wider` times as large.
Result<void> find_tolerances(const Model& model, Precision precision, int trials, double wider,
                             const std::string& scratch, Reference& reference);

}  // namespace vartml::fuzz_graphs
