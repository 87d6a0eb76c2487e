// SPDX-License-Identifier: Apache-2.0
// A convolution as a primitive sees it, cut into bands for several threads.
#pragma once
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "lib/device/softnpu/bands.h"
#include "lib/device/softnpu/post_ops.h"

namespace vartml::softnpu {

// Everything a convolution primitive is made of; `weights` in ONNX order with groups split off,
// channels padded.
struct Convolution {
    View src, dst, weights;
    View bias;  // buffer -1: none
    dnnl::memory::dims strides, dilations, pads_begin, pads_end;
    std::vector<PostOp> post;
};

// Weights with the groups split off: [G, O / G, I, k…].
Dims grouped(const Dims& dims, int64_t groups);

// About what one thread needs for weights of `p` at so many positions: 40 multiply-adds in a
// nanosecond.
int64_t cost_ns(const Convolution& p, int64_t positions);

// `p` for a band of the output: the rows of the input that it needs, and the padding that is left.
Convolution forward_band(const Convolution& p, const Band& band);
Convolution transposed_band(const Convolution& p, const Band& band);

// Whether every band reads at least one row.
bool reads_rows(const std::vector<Convolution>& parts);

}  // namespace vartml::softnpu
