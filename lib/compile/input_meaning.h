// SPDX-License-Identifier: Apache-2.0
// What numbers an input takes, as far as the weights show it.
#pragma once
#include <vector>

#include <vartml/postprocess.h>

#include "lib/graph/graph.h"

namespace vartml::compiler {

// What the sidecar's sections of inputs may say as x-vartml-weights-for: "units" where the filters
// that read an input are so large that pixels from 0 to 255 would drown in them. Inputs of which it
// does not show are left out. Looks at the one convolution behind whatever moves, cuts and joins
// elements of the input.
std::vector<ModelInfo::Input> input_meanings(const graph::Graph& graph);

}  // namespace vartml::compiler
