// SPDX-License-Identifier: Apache-2.0
// The sliding window of a convolution or pooling node, every default filled in.
#pragma once
#include <cstdint>
#include <vector>

#include "lib/graph/graph.h"

namespace vartml::graph {

struct Window {
    // One entry per spatial axis.
    std::vector<int64_t> kernel, strides, dilations, pads_begin, pads_end;
    int64_t group = 1;
    size_t rank() const { return kernel.size(); }
    // Distance between the first and the last element that the kernel touches, plus one.
    int64_t extent(size_t axis) const { return dilations[axis] * (kernel[axis] - 1) + 1; }
};

// Of any node with a window: Conv, ConvTranspose, ConvInteger, QLinearConv (kernel from the
// weight), the pools (kernel_shape). Errors: bad_model for lists of the wrong length, sizes below
// 1, negative pads.
Result<Window> window_of(const Graph& graph, const Node& node);

// Elements that a pooling or convolution window yields along one axis; below 1 where it does not
// fit.
int64_t window_positions(int64_t size, const Window& window, size_t axis, bool ceil_mode);

}  // namespace vartml::graph
