// SPDX-License-Identifier: Apache-2.0
// Convolutions by our own kernels.
#include "lib/run/softnpu/direct_conv.h"

#include "lib/run/softnpu/codes.h"
#include "lib/run/softnpu/conv_step.h"
#include "lib/run/softnpu/post_ops.h"
#include "lib/run/softnpu/processor.h"

namespace vartml::softnpu {

using kernels::ConvShape;

kernels::Element factors_of(const Lowering& lowering, const graph::Node& node) {
    return lowering.compute(node) == DataType::bf16 ? kernels::Element::bf16
                                                    : kernels::Element::f32;
}

// Only oneDNN has code for tiles.
bool multiplies_here(const Lowering& lowering, const graph::Node& node) {
    const DataType type = lowering.compute(node);
    return type == DataType::float32 || (type == DataType::bf16 && kernels::has_bf16_pairs() &&
                                         bf16_products() != Bf16Products::tiles);
}

namespace {

// Groups that are made as one, with zeros between them, so that vectors of outputs are full: that
// costs no more than vectors which are not.
int64_t groups_at_once(int64_t groups, int64_t outputs) {
    constexpr int64_t vector = 16;
    int64_t result = 1;
    for (int64_t n = 2; n <= groups && n * outputs <= vector; ++n)
        if (groups % n == 0) result = n;
    return result;
}

}  // namespace

Dims as_picture(Dims dims) {
    if (dims.size() == 3) dims.insert(dims.begin() + 2, 1);
    return dims;
}

GroupedShape conv_shape(const Lowering& lowering, const graph::Node& node, size_t weights) {
    const Dims& result = lowering.value(node.outputs[0]).type.shape;
    const Dims x = as_picture(lowering.value(node.inputs[0]).type.shape), y = as_picture(result);
    const Dims w = as_picture(lowering.value(node.inputs[weights]).type.shape);
    const size_t axes = result.size() - 2;
    Dims strides = conv_strides(node, result), dilations = node.get("dilations", Dims(axes, 1));
    Dims pads = node.get("pads", Dims(2 * axes, 0));
    if (axes == 1) {
        strides.insert(strides.begin(), 1);
        dilations.insert(dilations.begin(), 1);
        pads.insert(pads.begin(), 0);
    }
    const auto u = [](int64_t v) { return static_cast<uint32_t>(v); };
    const int64_t groups = node.get("group", int64_t{1});
    const bool depthwise = groups > 1 && w[0] == groups && w[1] == 1;
    const int64_t parts = depthwise ? 1 : groups / groups_at_once(groups, w[0] / groups);
    ConvShape shape{u(x[2]),
                    u(x[3]),
                    u(x[1] / parts),
                    u(y[2]),
                    u(y[3]),
                    u(y[1] / parts),
                    u(w[2]),
                    u(w[3]),
                    u(strides[0]),
                    u(strides[1]),
                    u(dilations[0]),
                    u(dilations[1]),
                    static_cast<int32_t>(pads[0]),
                    static_cast<int32_t>(pads[1]),
                    depthwise};
    return {shape, u(parts)};
}

std::vector<float> spread_groups(std::vector<float> weights, const Dims& dims, int64_t groups,
                                 const GroupedShape& to) {
    const int64_t own = dims[1] * dims[2] * dims[3], outputs = dims[0] / groups;
    const int64_t wide = int64_t{to.shape.in_channels} * dims[2] * dims[3];
    if (to.shape.depthwise || own == wide) return weights;
    const int64_t at_once = groups / to.groups;
    std::vector<float> result(static_cast<size_t>(dims[0] * wide), 0.0F);
    for (int64_t o = 0; o < dims[0]; ++o)
        std::copy_n(weights.begin() + o * own, own,
                    result.begin() + o * wide + o / outputs % at_once * own);
    return result;
}

namespace {

// Codes that are made of sums as long as these are in registers.
struct MadeCodes {
    graph::ValueId value = graph::none;
    kernels::Epilogue activation;
    std::vector<float> factors;  // behind it: one number, or one per channel
    uint8_t zero = 0;
};

// nullopt unless a QuantizeLinear alone reads the node and what is fused to this one are an
// activation and a factor per channel, or less.
std::optional<MadeCodes> find_made_codes(const Lowering& lowering, const graph::Node& node) {
    const graph::Node* const reader = lowering.only_reader(node.outputs[0]);
    if (!reader || reader->kind != "QuantizeLinear" || reader->inputs[0] != node.outputs[0])
        return std::nullopt;
    MadeCodes result{reader->outputs[0], {}, {1}, 0};
    const DataType type = lowering.value(result.value).type.data_type;
    const auto coding = coding_of(lowering.graph(), *reader, type, 1, 2);
    if (!coding || type != DataType::uint8) return std::nullopt;
    bool has_factors = false;
    for (const graph::Operation& part : node.fused) {
        if (has_factors) return std::nullopt;
        if (part.kind == "Mul") {
            result.factors = floats_of(lowering.graph(), node, 3);
            has_factors = !result.factors.empty();
            if (!has_factors) return std::nullopt;
            continue;
        }
        const auto activation = find_activation(part);
        if (!activation || result.activation.activation != kernels::Activation::none)
            return std::nullopt;
        result.activation = *activation;
    }
    const auto channels = static_cast<size_t>(lowering.value(node.outputs[0]).type.shape[1]);
    if (result.factors.size() != 1 && result.factors.size() != channels) return std::nullopt;
    for (float& factor : result.factors) factor /= coding->scale;
    result.zero = static_cast<uint8_t>(coding->zero);
    return result;
}

}  // namespace

bool fits_kernels(const Dims& weights) {
    return weights.size() == 4 && weights[2] * weights[3] <= 121;
}

bool fits_direct_conv(const Lowering& lowering, const graph::Node& node) {
    return fits_kernels(lowering.value(node.inputs[1]).type.shape) &&
           (read_conv_parts(node) || find_made_codes(lowering, node));
}

bool runs_direct_conv(const Lowering& lowering, const graph::Node& node) {
    return multiplies_here(lowering, node) && fits_direct_conv(lowering, node);
}

Result<void> lower_direct_conv(Lowering& lowering, const graph::Node& node) {
    const graph::ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : graph::none;
    GroupedShape shape = conv_shape(lowering, node, 1);
    shape.shape.factors = factors_of(lowering, node);
    const View src = conv_source(lowering, node.inputs[0], lowering.compute(node));
    const View weights = pack_conv_weights(lowering, shape, [&lowering, &node, bias, shape] {
        const graph::ValueId id = node.inputs[1];
        return ConvWeights{spread_groups(floats(lowering, id), lowering.value(id).type.shape,
                                         node.get("group", int64_t{1}), shape),
                           floats(lowering, bias)};
    });
    if (const auto made = find_made_codes(lowering, node)) {
        const View stored = lowering.destination(made->value, channels_last(4), true);
        const View dst = is_code_picture(stored)
                             ? stored
                             : lowering.new_buffer(DataType::uint8, stored.dims, channels_last(4));
        emit_direct_conv(lowering, node, shape, made->activation, src, weights, {}, dst,
                         codes_of_sums(lowering, {1}, made->factors, dst.dims[1], made->zero));
        lowering.copy_unless_there(dst, stored, node.name);
        lowering.finish(made->value, stored);
        return {};
    }
    const graph::ValueId out = node.outputs[0];
    const ConvParts parts = *read_conv_parts(node);
    View residual;
    if (parts.residual) {
        residual = lowering.view(node.inputs[3]);
        if (!is_conv_picture(residual) || residual.type != src.type)
            residual = lowering.dense(node.inputs[3], channels_last(4), src.type);
        // A number per channel is the same at every pixel.
        residual = broadcast(residual, lowering.value(out).type.shape);
    }
    const View dst = conv_destination(lowering, out);
    emit_direct_conv(lowering, node, shape, parts.epilogue, src, weights, residual, dst);
    finish_conv(lowering, node, dst);
    return {};
}

// Transposed convolutions by our own kernels: one convolution per phase of the output, each with
// its part of the kernel.

namespace {

// Output rows (or columns) phase, phase + stride, … of a transposed convolution: a convolution with
// every stride-th tap, in reverse.
struct Phase {
    int64_t phase, outputs, first_tap, taps, pad;
};
std::vector<Phase> phases(int64_t outputs, int64_t stride, int64_t kernel, int64_t pad) {
    std::vector<Phase> result;
    for (int64_t p = 0; p < stride && p < outputs; ++p) {
        const int64_t first = (p + pad) % stride;
        const int64_t taps = first < kernel ? (kernel - first + stride - 1) / stride : 0;
        // Output t of the phase reads input t + (p + pad - first) / stride - j with tap j.
        result.push_back({p, (outputs - p + stride - 1) / stride, first, taps,
                          taps - 1 - (p + pad - first) / stride});
    }
    return result;
}

// Every stride-th pixel of a picture from (y, x) on.
View pixels_of(const View& picture, const Phase& y, const Phase& x, int64_t sy, int64_t sx) {
    return slice(slice(picture, 2, y.phase, y.outputs, sy), 3, x.phase, x.outputs, sx);
}

// [O][C][taps] of one phase from [C][O][kernel], taps reversed.
std::vector<float> phase_weights(const float* weights, const Dims& dims, const Phase& y,
                                 const Phase& x, int64_t sy, int64_t sx) {
    std::vector<float> result;
    for (int64_t o = 0; o < dims[1]; ++o) {
        for (int64_t c = 0; c < dims[0]; ++c) {
            const float* const filter = weights + (c * dims[1] + o) * dims[2] * dims[3];
            for (int64_t j = y.taps - 1; j >= 0; --j) {
                for (int64_t i = x.taps - 1; i >= 0; --i) {
                    result.push_back(
                        filter[(y.first_tap + j * sy) * dims[3] + x.first_tap + i * sx]);
                }
            }
        }
    }
    return result;
}

// Few channels leave vectors of a phase almost empty.
constexpr int64_t few_channels = 16;

// Every input pixel makes a block of output pixels of its own.
bool is_upscaling(const Dims& weights, const Dims& strides, const Dims& pads, const Dims& dst,
                  const View& src) {
    return weights[2] == strides[0] && weights[3] == strides[1] && pads == Dims{0, 0, 0, 0} &&
           dst[2] == src.dims[2] * strides[0] && dst[3] == src.dims[3] * strides[1];
}

// [y][x][O][C] of a kernel [C][O][y][x], and the bias of each of those outputs.
ConvWeights upscaling_weights(const std::vector<float>& weights, const std::vector<float>& biases,
                              const Dims& dims) {
    const int64_t taps = dims[2] * dims[3];
    ConvWeights result;
    for (int64_t t = 0; t < taps; ++t) {
        for (int64_t o = 0; o < dims[1]; ++o) {
            result.biases.push_back(biases.empty() ? 0 : biases[static_cast<size_t>(o)]);
            for (int64_t c = 0; c < dims[0]; ++c) {
                const int64_t at = (c * dims[1] + o) * taps + t;
                result.weights.push_back(weights[static_cast<size_t>(at)]);
            }
        }
    }
    return result;
}

// All phases as the channels of one 1x1 convolution, then put in their places.
Result<void> lower_upscaling(Lowering& lowering, const graph::Node& node,
                             const kernels::Epilogue& epilogue, const View& src) {
    const View dst = lowering.destination(node.outputs[0], channels_last(4), true);
    const graph::ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : graph::none;
    const Dims& w = lowering.value(node.inputs[1]).type.shape;  // [C][O][y][x]
    const int64_t channels = w[2] * w[3] * w[1];
    const auto u = [](int64_t v) { return static_cast<uint32_t>(v); };
    GroupedShape shape{
        {u(src.dims[2]), u(src.dims[3]), u(w[0]), u(src.dims[2]), u(src.dims[3]), u(channels)}};
    shape.shape.factors = factors_of(lowering, node);
    const View packed = pack_conv_weights(lowering, shape, [&lowering, &node, &w, bias] {
        return upscaling_weights(floats(lowering, node.inputs[1]), floats(lowering, bias), w);
    });
    const View made =
        lowering.new_buffer(is_conv_picture(dst) ? dst.type : DataType::float32,
                            {src.dims[0], channels, src.dims[2], src.dims[3]}, channels_last(4));
    emit_direct_conv(lowering, node, shape, epilogue, src, packed, {}, made);
    // Both as [N, O, H, y, W, x].
    const Dims blocks{src.dims[0], w[1], src.dims[2], w[2], src.dims[3], w[3]};
    View from = made, to = dst;
    from.dims = to.dims = blocks;
    from.strides = {made.strides[0], 1, made.strides[2], w[3] * w[1], made.strides[3], w[1]};
    to.strides = {dst.strides[0], dst.strides[1],        dst.strides[2] * w[2],
                  dst.strides[2], dst.strides[3] * w[3], dst.strides[3]};
    lowering.copy(from, to, node.name);
    lowering.finish(node.outputs[0], dst);
    return {};
}

}  // namespace

bool runs_direct_conv_transpose(const Lowering& lowering, const graph::Node& node) {
    const Dims& w = lowering.value(node.inputs[1]).type.shape;
    const auto parts = read_conv_parts(node);
    if (w.size() != 4 || !parts || parts->residual || node.get("group", int64_t{1}) != 1)
        return false;
    const Dims dilations = node.get("dilations", Dims{1, 1});
    const Dims strides = node.get("strides", Dims{1, 1});
    return multiplies_here(lowering, node) && dilations == Dims{1, 1} && w[2] >= strides[0] &&
           w[3] >= strides[1] && w[2] * w[3] <= 121;
}

Result<void> lower_direct_conv_transpose(Lowering& lowering, const graph::Node& node) {
    const graph::ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : graph::none;
    const graph::ValueId out = node.outputs[0];
    ConvParts parts = *read_conv_parts(node);
    const View src = conv_source(lowering, node.inputs[0], lowering.compute(node));
    const Dims& w = lowering.value(node.inputs[1]).type.shape;
    const Dims strides = node.get("strides", Dims{1, 1}), pads = node.get("pads", Dims{0, 0, 0, 0});
    const Dims& shape_of_out = lowering.value(out).type.shape;
    if (w[1] < few_channels && is_upscaling(w, strides, pads, shape_of_out, src)) {
        return lower_upscaling(lowering, node, parts.epilogue, src);
    }
    const View dst = conv_destination(lowering, out);
    const bool apart = w[1] < few_channels && is_dense(dst, channels_last(4));
    const kernels::Epilogue own = apart ? kernels::Epilogue{} : parts.epilogue;
    for (const Phase& y : phases(dst.dims[2], strides[0], w[2], pads[0])) {
        for (const Phase& x : phases(dst.dims[3], strides[1], w[3], pads[1])) {
            const auto u = [](int64_t v) { return static_cast<uint32_t>(v); };
            GroupedShape shape{{u(src.dims[2]), u(src.dims[3]), u(w[0]), u(y.outputs), u(x.outputs),
                                u(w[1]), u(y.taps), u(x.taps), 1, 1, 1, 1,
                                static_cast<int32_t>(y.pad), static_cast<int32_t>(x.pad)}};
            shape.shape.factors = factors_of(lowering, node);
            const View weights =
                pack_conv_weights(lowering, shape, [&lowering, &node, &w, bias, y, x, strides] {
                    const std::vector<float> all = floats(lowering, node.inputs[1]);
                    return ConvWeights{phase_weights(all.data(), w, y, x, strides[0], strides[1]),
                                       floats(lowering, bias)};
                });
            emit_direct_conv(lowering, node, shape, own, src, weights, {},
                             pixels_of(dst, y, x, strides[0], strides[1]));
        }
    }
    if (apart) lower_activation(lowering, parts.epilogue, dst, dst, node.name);
    finish_conv(lowering, node, dst);
    return {};
}

}  // namespace vartml::softnpu
