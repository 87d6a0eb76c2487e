// SPDX-License-Identifier: Apache-2.0
// A window that slides over the spatial axes of a tensor: what convolutions and pools share.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "lib/graph/graph.h"
#include "lib/graph/kernel.h"

namespace vartml::graph {

// The window of a node, every default filled in.
struct Window {
    // One entry per spatial axis.
    std::vector<int64_t> kernel, strides, dilations, pads_begin, pads_end;
    int64_t group = 1;
    size_t rank() const { return kernel.size(); }
    uint64_t taps() const;  // positions of the kernel
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

// What a QLinearConv does to the real numbers before it makes codes of them: an operator with one
// input, and then a factor per channel, empty: none. Both are written as its attributes.
struct BeforeCodes {
    std::optional<Operation> activation;
    std::vector<float> factors;
};
// nullopt for an activation that a QLinearConv does not have.
std::optional<Attributes> write_before_codes(const BeforeCodes& before);
BeforeCodes read_before_codes(const Node& node);

}  // namespace vartml::graph

namespace vartml::cpu {

using Index = std::array<int64_t, max_rank>;

// The next index of the leading axes of a shape in row-major order; false, and all zero again,
// behind the last one.
inline bool advance(Index& index, const Shape& shape, size_t axes) {
    while (axes-- > 0) {
        if (++index[axes] < shape[axes]) return true;
        index[axes] = 0;
    }
    return false;
}

// The axes behind batch and channels.
inline Shape spatial(const Shape& shape) {
    return Shape(std::span<const int64_t>(shape).subspan(2));
}

// Every list has one entry per spatial axis. Where the window stands at position p, its tap t reads
// element p * stride + t * dilation - pad of the input, or padding where that is outside.
struct Sliding {
    Shape size;       // of the input
    Shape positions;  // of the output
    Shape kernel, strides, dilations, pads, pads_end;

    size_t rank() const { return size.size(); }
    size_t last() const { return size.size() - 1; }
    int64_t start(size_t axis, int64_t position, int64_t tap) const {
        return position * strides[axis] + tap * dilations[axis] - pads[axis];
    }
};

inline Sliding sliding(const graph::Node& node, const Shape& input, const Shape& output,
                       const Shape& kernel) {
    const size_t rank = kernel.size();
    const auto list = [&](const char* name, size_t entries, int64_t fallback) {
        return node.get(name, std::vector<int64_t>(entries, fallback));
    };
    const auto pads = list("pads", 2 * rank, 0);
    return {.size = spatial(input),
            .positions = spatial(output),
            .kernel = kernel,
            .strides = Shape(list("strides", rank, 1)),
            .dilations = Shape(list("dilations", rank, 1)),
            .pads = Shape(std::span(pads).first(rank)),
            .pads_end = Shape(std::span(pads).subspan(rank))};
}

// Positions along the last axis, the others standing still, whose tap lies inside the input:
// position p of [first, last) reads element offset + p * stride of the channel.
struct Run {
    int64_t first = 0, last = 0, offset = 0;
};

inline Run run_inside(const Sliding& window, const Index& position, const Index& tap) {
    Run run;
    for (size_t axis = 0; axis < window.last(); ++axis) {
        const int64_t at = window.start(axis, position[axis], tap[axis]);
        if (at < 0 || at >= window.size[axis]) return {};
        run.offset = (run.offset + at) * window.size[axis + 1];
    }
    const size_t axis = window.last();
    const int64_t stride = window.strides[axis], start = window.start(axis, 0, tap[axis]);
    run.first = start < 0 ? (-start + stride - 1) / stride : 0;
    const int64_t room = window.size[axis] - start;  // elements from the first tap on
    run.last = room <= 0 ? 0 : std::min((room + stride - 1) / stride, window.positions[axis]);
    run.last = std::max(run.first, run.last);
    run.offset += start;
    return run;
}

}  // namespace vartml::cpu
