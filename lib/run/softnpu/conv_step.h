// SPDX-License-Identifier: Apache-2.0
// What convolutions by our own kernels share: the parts behind them, where pictures lie, the step.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/conv/conv.h"
#include "lib/run/softnpu/border.h"
#include "lib/run/softnpu/lowering.h"
#include "lib/run/softnpu/post_ops.h"

namespace vartml::softnpu {

// The parts behind the convolution: one activation and one addition at most, in either order.
struct ConvParts {
    kernels::Epilogue epilogue;
    bool residual = false;
};
// nullopt where there are others.
std::optional<ConvParts> read_conv_parts(const graph::Node& node);

// The node's strides over `positions` [N, C, …] of its window. From one position there is no step:
// it is 1, for which there are more kernels, and oneDNN 3.7 sums some int8 products wrongly at
// others.
Dims conv_strides(const graph::Node& node, const Dims& positions);

// fp32 or bf16 with contiguous channels: what the kernels of floats read and write.
bool is_conv_picture(const View& view);
// Codes with contiguous channels.
bool is_code_picture(const View& view);
// Of either.
kernels::Element element_of(const View& view);

// Channels from `channel` on of image n of a view [N, C, H, W]; without data where there is no
// view.
template <typename T>
kernels::PictureOf<T> picture_of(const Bases& bases, const View& view, int64_t n,
                                 int64_t channel = 0) {
    if (view.buffer < 0) return {nullptr, 0, 0};
    const int64_t offset = n * view.strides[0] + channel;
    return {address(bases, view) + offset * static_cast<int64_t>(size_bytes(view.type)),
            static_cast<size_t>(view.strides[2]), static_cast<size_t>(view.strides[3])};
}

// The picture as it lies where the kernels can read it, else copied, to `type`. A blocked border
// tensor of another type is copied whole, with its padding channels, which costs less than leaving
// them out.
View conv_source(Lowering& lowering, graph::ValueId id, DataType type);

// Where a value is written: its place if the kernels can write there.
View conv_destination(Lowering& lowering, graph::ValueId id);
// The node's result lies in `dst`; rounded once, for all that read it, where it is stored as bf16.
void finish_conv(Lowering& lowering, const graph::Node& node, const View& dst);

// A convolution of slices of channels that know nothing of each other, each of `shape`.
struct GroupedShape {
    kernels::ConvShape shape;
    uint32_t groups = 1;
};

// What makes codes of the sums of all groups: their scales, then their factors, f32; buffer -1:
// results are no codes.
struct CodesOfSums {
    View scales;
    uint8_t zero = 0;
};

// Each one number or one per output.
CodesOfSums codes_of_sums(Lowering& lowering, const std::vector<float>& scales,
                          const std::vector<float>& factors, int64_t outputs, uint8_t zero);

// Appends the step; `residual` with buffer -1: none, else of the source's type. The shape's source
// and result are those of `src` and `dst`.
void emit_direct_conv(Lowering& lowering, const graph::Node& node, const GroupedShape& shape,
                      const kernels::Epilogue& epilogue, const View& src, const View& weights,
                      const View& residual, const View& dst, const CodesOfSums& codes = {});

// Weights [O][C][y][x] of all groups, one after another, and biases, of which there may be none.
struct ConvWeights {
    std::vector<float> weights, biases;
};
// Those packed for the kernels, rounded by filter where these multiply bf16; `make` is called where
// the side cache does not have them.
View pack_conv_weights(Lowering& lowering, const GroupedShape& shape,
                       std::function<ConvWeights()> make);
// The elements of a constant; none for graph::none.
std::vector<float> floats(Lowering& lowering, graph::ValueId id);

// A convolution as a primitive sees it, cut into bands for several threads.

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
