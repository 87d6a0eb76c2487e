// SPDX-License-Identifier: Apache-2.0
// Runs a float graph in plain loops: the specification that devices are tested against. Formulas
// are those of the ONNX operators; sums are made in double.
#pragma once
#include <map>
#include <vector>

#include "lib/graph/graph.h"

namespace vartml::test {

using Tensor = std::vector<float>;

// Values of all graph outputs for the inputs given, dense row-major. Aborts the test program on an
// operator it does not know.
std::vector<Tensor> run_reference(const graph::Graph& graph, const std::vector<Tensor>& inputs);

}  // namespace vartml::test
