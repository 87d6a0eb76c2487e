// SPDX-License-Identifier: Apache-2.0
// Convolutions by our own kernels.
#include "lib/device/softnpu/direct_conv.h"

#include <string_view>

#include "lib/device/softnpu/conv_step.h"

namespace vartml::softnpu {
namespace {

using kernels::ConvShape;

ConvShape shape_of(const Lowering& lowering, const graph::Node& node) {
    const Dims& x = lowering.value(node.inputs[0]).type.shape;
    const Dims& w = lowering.value(node.inputs[1]).type.shape;
    const Dims& y = lowering.value(node.outputs[0]).type.shape;
    const Dims strides = node.get("strides", Dims{1, 1}),
               dilations = node.get("dilations", Dims{1, 1});
    const Dims pads = node.get("pads", Dims{0, 0, 0, 0});
    const auto u = [](int64_t v) { return static_cast<uint32_t>(v); };
    const bool depthwise = node.get("group", int64_t{1}) > 1;
    return {u(x[2]),
            u(x[3]),
            u(x[1]),
            u(y[2]),
            u(y[3]),
            u(y[1]),
            u(w[2]),
            u(w[3]),
            u(strides[0]),
            u(strides[1]),
            u(dilations[0]),
            u(dilations[1]),
            static_cast<int32_t>(pads[0]),
            static_cast<int32_t>(pads[1]),
            depthwise};
}

// Whether the kernel widens the program's input itself, row by row, which saves a pass over it.
bool reads_bf16(Lowering& lowering, const graph::Node& node, const ConvShape& shape) {
    const View& view = lowering.view(node.inputs[0]);
    const bool has_contiguous_channels = view.strides[1] == 1 || view.dims[1] == 1;
    return view.type == DataType::bf16 && lowering.is_border_input(view) &&
           has_contiguous_channels && !shape.depthwise &&
           std::string_view(kernels::conv_method(shape)) == "direct";
}

}  // namespace

bool fits_direct_conv(const Lowering& lowering, const graph::Node& node) {
    const auto& weight = lowering.value(node.inputs[1]);
    if (!weight.constant || weight.type.shape.size() != 4 || !read_conv_parts(node)) return false;
    const graph::ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : graph::none;
    if (bias >= 0 && !lowering.value(bias).constant) return false;
    const Dims& w = weight.type.shape;
    const int64_t groups = node.get("group", int64_t{1});
    const bool depthwise = groups > 1 && w[0] == groups && w[1] == 1;
    if (groups > 1 && !depthwise) return false;
    return w[2] * w[3] <= 121;
}

bool runs_direct_conv(const Lowering& lowering, const graph::Node& node) {
    return lowering.compute(node) == DataType::float32 && fits_direct_conv(lowering, node);
}

Result<void> lower_direct_conv(Lowering& lowering, const graph::Node& node) {
    const graph::ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : graph::none;
    const graph::ValueId out = node.outputs[0];
    const ConvParts parts = *read_conv_parts(node);
    ConvShape shape = shape_of(lowering, node);
    shape.bf16_source = reads_bf16(lowering, node, shape);
    const View src =
        shape.bf16_source ? lowering.view(node.inputs[0]) : conv_source(lowering, node.inputs[0]);
    View residual;
    if (parts.residual) {
        residual = lowering.view(node.inputs[3]);
        if (!has_contiguous_channels(residual)) {
            residual = lowering.dense(node.inputs[3], channels_last(4), DataType::float32);
        }
    }
    const View dst = conv_destination(lowering, out);
    const View weights = pack_conv_weights(lowering, shape, [&lowering, &node, bias] {
        return ConvWeights{floats(lowering, node.inputs[1]), floats(lowering, bias)};
    });
    emit_direct_conv(lowering, node, shape, parts.epilogue, src, weights, residual, dst);
    finish_conv(lowering, node, dst);
    return {};
}

}  // namespace vartml::softnpu
