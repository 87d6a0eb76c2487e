// SPDX-License-Identifier: Apache-2.0
// Convolution and transposed convolution, channels-last, with bias, activation and residual in one
// primitive.
#include <cstring>

#include "lib/device/softnpu/border.h"
#include "lib/device/softnpu/conv_bands.h"
#include "lib/device/softnpu/copy_step.h"
#include "lib/device/softnpu/direct_conv.h"
#include "lib/device/softnpu/onednn.h"
#include "lib/device/softnpu/operators.h"
#include "lib/device/softnpu/point_conv.h"
#include "lib/device/softnpu/post_ops.h"
#include "lib/device/softnpu/rounded_weights.h"

namespace vartml::softnpu {
namespace {

using dnnl::memory;

graph::ValueId input_or_none(const graph::Node& node, size_t i) {
    return i < node.inputs.size() ? node.inputs[i] : graph::none;
}

Error not_constant(const graph::Node& node) {
    return {ErrorCode::unsupported, "node '" + node.name + "': " + std::string(node.base()) +
                                        " has weights that are computed at run time, the software "
                                        "NPU needs constant ones"};
}

// The picture that a convolution reads: as it lies where channels are last (padding channels of a
// blocked border tensor become channels with zero weights), else copied.
View convolution_source(Lowering& lowering, const graph::Node& node, int64_t groups) {
    const graph::ValueId id = node.inputs[0];
    const View& view = lowering.view(id);
    const Order order = channels_last(view.dims.size());
    if (groups == 1 && lowering.is_border_input(view)) {
        if (const auto padded = with_padding_channels(view)) {
            return lowering.dense(*padded, order, lowering.compute(node), lowering.value(id).name);
        }
    }
    return lowering.dense(id, order, lowering.compute(node));
}

// Weights [O, I / groups, k…] as the convolution multiplies them, in f32.
View weights_of(Lowering& lowering, const graph::Node& node) {
    const graph::ValueId id = node.inputs[1];
    const Dims& dims = lowering.value(id).type.shape;
    const Order order = row_major(dims.size());
    if (lowering.compute(node) != DataType::bf16)
        return lowering.dense(id, order, DataType::float32);
    return lowering.add_constant(DataType::float32, dims, order, [&lowering, id] {
        const std::vector<float> weights = rounded_weights(lowering, id);
        Bytes bytes(weights.size() * sizeof(float));
        std::memcpy(bytes.data(), weights.data(), bytes.size());
        return bytes;
    });
}

// Those with the input channels padded to `channels`.
View padded_weights(Lowering& lowering, const graph::Node& node, int64_t channels) {
    const View from = weights_of(lowering, node);
    if (from.dims[1] == channels) return from;
    Dims padded = from.dims;
    padded[1] = channels;
    const Order order = row_major(padded.size());
    return lowering.add_constant(DataType::float32, padded, order, [&lowering, from, padded] {
        const View view{0, DataType::float32, 0, padded,
                        dense_strides(padded, row_major(padded.size()))};
        Bytes bytes(static_cast<size_t>(view.elements()) * sizeof(float));
        View inside = view;
        inside.dims = from.dims;
        copy_now(from, lowering.constant_data(from), inside, bytes.data());
        return bytes;
    });
}

template <typename Primitive>
Result<void> emit(Lowering& lowering, const graph::Node& node, const Convolution& whole,
                  dnnl::algorithm algorithm, std::vector<Convolution> parts) {
    if (!reads_rows(parts)) parts = {whole};
    const auto any = memory::desc(whole.weights.dims, onednn_type(lowering.compute(node)),
                                  memory::format_tag::any);
    WeightPacker packed(lowering, whole.weights);
    const bool has_bias = whole.bias.buffer >= 0;
    std::vector<OnednnCall> calls;
    try {
        for (const Convolution& p : parts) {
            const typename Primitive::primitive_desc desc(
                cpu_engine(), dnnl::prop_kind::forward_inference, algorithm, descriptor(p.src), any,
                has_bias ? descriptor(p.bias) : memory::desc(), descriptor(p.dst), p.strides,
                p.dilations, p.pads_begin, p.pads_end, attributes(p.post));
            OnednnCall call{Primitive(desc),
                            desc.impl_info_str(),
                            {{DNNL_ARG_SRC, p.src, desc.src_desc()},
                             {DNNL_ARG_WEIGHTS, packed(desc.weights_desc()), desc.weights_desc()},
                             {DNNL_ARG_DST, p.dst, desc.dst_desc()}},
                            desc.scratchpad_desc()};
            if (has_bias) call.arguments.push_back({DNNL_ARG_BIAS, p.bias, desc.bias_desc()});
            add_operands(p.post, call);
            calls.push_back(std::move(call));
        }
    } catch (const dnnl::error& e) {
        return onednn_error(node, e);
    }
    emit_onednn(lowering, node, std::move(calls));
    return {};
}

}  // namespace

Result<void> lower_conv(Lowering& lowering, const graph::Node& node) {
    if (runs_direct_conv(lowering, node)) return lower_direct_conv(lowering, node);
    if (runs_point_conv(lowering, node)) return lower_point_conv(lowering, node);
    const graph::ValueId weight = node.inputs[1], bias = input_or_none(node, 2);
    if (!lowering.value(weight).constant) return not_constant(node);
    const int64_t groups = node.get("group", int64_t{1});
    const Dims& kernel = lowering.value(weight).type.shape;
    const size_t spatial = kernel.size() - 2;
    Convolution p;
    p.src = convolution_source(lowering, node, groups);
    const Order order = channels_last(kernel.size());
    View weights = padded_weights(lowering, node, p.src.dims[1] / groups);
    if (groups > 1) weights = *reshape(weights, grouped(weights.dims, groups));
    if (bias >= 0) p.bias = lowering.dense(bias, row_major(1), DataType::float32);
    p.dst = lowering.destination(node.outputs[0], order, false);
    p.strides = node.get("strides", Dims(spatial, 1));
    p.dilations = node.get("dilations", Dims(spatial, 1));
    const Dims pads = node.get("pads", Dims(2 * spatial, 0));
    for (size_t i = 0; i < spatial; ++i) {
        const int64_t reach = (kernel[i + 2] - 1) * p.dilations[i] + 1;
        p.pads_begin.push_back(pads[i]);
        p.pads_end.push_back((p.dst.dims[i + 2] - 1) * p.strides[i] + reach - p.src.dims[i + 2] -
                             pads[i]);
        --p.dilations[i];  // oneDNN counts the gaps
    }
    auto post = make_post_ops(lowering, node, order);
    if (!post) return post.error();
    p.post = std::move(*post);
    p.weights = weights;
    std::vector<Convolution> parts;
    for (const Band& band :
         bands(p.dst.dims, cost_ns(p, p.dst.elements() / p.dst.dims[1]), lowering.threads())) {
        parts.push_back(forward_band(p, band));
    }
    auto ok = emit<dnnl::convolution_forward>(lowering, node, p, dnnl::algorithm::convolution_auto,
                                              std::move(parts));
    if (ok) lowering.finish(node.outputs[0], p.dst);
    return ok;
}

Result<void> lower_conv_transpose(Lowering& lowering, const graph::Node& node) {
    if (runs_direct_conv_transpose(lowering, node)) {
        return lower_direct_conv_transpose(lowering, node);
    }
    const graph::ValueId weight = node.inputs[1], bias = input_or_none(node, 2);
    if (!lowering.value(weight).constant) return not_constant(node);
    const int64_t groups = node.get("group", int64_t{1});
    const Dims& kernel = lowering.value(weight).type.shape;  // [C, O / groups, k…]
    const size_t rank = kernel.size(), spatial = rank - 2;
    Convolution p;
    p.src = lowering.dense(node.inputs[0], channels_last(rank), lowering.compute(node));
    const Order order = channels_last(rank);
    View weights = lowering.dense(weight, row_major(rank), DataType::float32);
    std::vector<int64_t> perm;
    for (size_t i = 0; i < rank; ++i) perm.push_back(static_cast<int64_t>(i));
    std::swap(perm[0], perm[1]);
    if (groups > 1) {
        weights = *reshape(weights, grouped(weights.dims, groups));
        perm.push_back(static_cast<int64_t>(rank));
        std::swap(perm[0], perm[1]);
        std::swap(perm[1], perm[2]);
        perm[0] = 0, perm[1] = 2, perm[2] = 1;
    }
    weights = transpose(weights, perm);
    if (bias >= 0) p.bias = lowering.dense(bias, row_major(1), DataType::float32);
    p.dst = lowering.destination(node.outputs[0], order, false);
    p.strides = node.get("strides", Dims(spatial, 1));
    p.dilations = node.get("dilations", Dims(spatial, 1));
    const Dims pads = node.get("pads", Dims(2 * spatial, 0));
    for (size_t i = 0; i < spatial; ++i) {
        const int64_t reach = (kernel[i + 2] - 1) * p.dilations[i] + 1;
        p.pads_begin.push_back(pads[i]);
        // Output padding is a smaller end padding.
        p.pads_end.push_back((p.src.dims[i + 2] - 1) * p.strides[i] + reach - p.dst.dims[i + 2] -
                             pads[i]);
        --p.dilations[i];
    }
    auto post = make_post_ops(lowering, node, order);
    if (!post) return post.error();
    p.post = std::move(*post);
    p.weights = weights;
    std::vector<Convolution> parts;
    for (const Band& band :
         bands(p.dst.dims, cost_ns(p, p.src.elements() / p.src.dims[1]), lowering.threads())) {
        parts.push_back(transposed_band(p, band));
    }
    auto ok = emit<dnnl::deconvolution_forward>(
        lowering, node, p, dnnl::algorithm::deconvolution_direct, std::move(parts));
    if (ok) lowering.finish(node.outputs[0], p.dst);
    return ok;
}

}  // namespace vartml::softnpu
