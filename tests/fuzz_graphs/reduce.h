// SPDX-License-Identifier: Apache-2.0
// The smallest part of a model that still has a fault.
#pragma once
#include <functional>

#include "tests/fuzz_graphs/model.h"

namespace vartml::fuzz_graphs {

// Keeps one output, then makes inputs of tensors inside, as long as `has_fault` says so of what is
// left. `values` has what all tensors hold.
Model reduce(const Model& model, const Values& values,
             const std::function<bool(const Model&)>& has_fault);

}  // namespace vartml::fuzz_graphs
