// SPDX-License-Identifier: Apache-2.0
// The embedded pre-process: bytes of a picture to the numbers of a model.
#pragma once
#include <cstddef>
#include <vector>

#include "lib/graph/graph.h"

namespace vartml::cpu {

// (byte - mean[c]) * scale[c] in f32 for each of the 256 bytes, channel after channel: the
// arithmetic of kernels::normalise, so that the tensor is the one that the pre-processor makes.
std::vector<float> picture_table(const graph::Node& node);

}  // namespace vartml::cpu
