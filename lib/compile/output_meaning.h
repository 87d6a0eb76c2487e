// SPDX-License-Identifier: Apache-2.0
// What the numbers of an output are, as far as the graph shows it.
#pragma once
#include <optional>
#include <vector>

#include <vartml/postprocess.h>

#include "lib/graph/graph.h"

namespace vartml::compiler {

// What the sidecar's section of each output may say, in the order of the graph: ends_in, and of
// integer codes the scale and zero point that make reals of them. Looks towards the inputs, through
// whatever moves or rewrites elements without changing what they stand for, at the operator that
// made them.
std::vector<ModelInfo::Output> output_meanings(const graph::Graph& graph);

// How many classes there are, where an output lists integers beside a list of as many boxes, and
// the graph itself makes them smaller than a number: the rest of a division (numbers of boxes and
// classes, as DETR's line has them), or the place of the greatest along an axis. nullopt where it
// does not show, or two differ.
std::optional<unsigned> class_count(const graph::Graph& graph);

}  // namespace vartml::compiler
