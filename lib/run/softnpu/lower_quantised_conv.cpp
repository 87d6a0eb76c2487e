// SPDX-License-Identifier: Apache-2.0
// Convolutions of codes of 8 bits: QLinearConv, ConvInteger.
#include <algorithm>

#include "lib/graph/ops_window.h"
#include "lib/run/softnpu/border.h"
#include "lib/run/softnpu/code_conv.h"
#include "lib/run/softnpu/codes.h"
#include "lib/run/softnpu/conv_step.h"
#include "lib/run/softnpu/direct_conv.h"
#include "lib/run/softnpu/int8_products.h"
#include "lib/run/softnpu/operators.h"

namespace vartml::softnpu {
namespace {

using dnnl::memory;

// Where the two operators have their operands.
struct Inputs {
    size_t x, xz, w, wz;
};
constexpr Inputs qlinear{0, 2, 3, 5}, integer{0, 2, 1, 3};

const Inputs& inputs_of(const graph::Node& node) {
    return node.kind == "ConvInteger" ? integer : qlinear;
}

// The convolution without its numbers.
Convolution geometry(const Lowering& lowering, const graph::Node& node, size_t weights) {
    const Dims& kernel = lowering.value(node.inputs[weights]).type.shape;
    const Dims& from = lowering.value(node.inputs[0]).type.shape;
    const Dims& to = lowering.value(node.outputs[0]).type.shape;
    const size_t spatial = kernel.size() - 2;
    Convolution p;
    p.strides = conv_strides(node, to);
    p.dilations = node.get("dilations", Dims(spatial, 1));
    const Dims pads = node.get("pads", Dims(2 * spatial, 0));
    for (size_t i = 0; i < spatial; ++i) {
        const int64_t reach = (kernel[i + 2] - 1) * p.dilations[i] + 1;
        p.pads_begin.push_back(pads[i]);
        p.pads_end.push_back((to[i + 2] - 1) * p.strides[i] + reach - from[i + 2] - pads[i]);
        --p.dilations[i];  // oneDNN counts the gaps
    }
    return p;
}

// Weights [O, I, k…], groups split off, in a type that holds them.
template <typename T>
View weights_view(Lowering& lowering, const std::vector<T>& numbers, DataType type, Dims dims,
                  int64_t groups) {
    const auto bytes = std::as_bytes(std::span(numbers));
    const View view = lowering.add_constant(type, dims, row_major(dims.size()),
                                            Bytes(bytes.begin(), bytes.end()));
    return groups > 1 ? *reshape(view, grouped(dims, groups)) : view;
}

// Weights as they lie in the model where they are so already: executables share their packing.
View codes_view(Lowering& lowering, const graph::Node& node, const std::vector<int8_t>& centred,
                int64_t groups) {
    const Inputs& at = inputs_of(node);
    const graph::Value& value = lowering.value(node.inputs[at.w]);
    const auto zeros = integers_of(lowering.graph(), node, at.wz);
    if (value.type.data_type != DataType::int8 ||
        std::ranges::any_of(zeros, [](int64_t zero) { return zero != 0; }))
        return weights_view(lowering, centred, DataType::int8, value.type.shape, groups);
    const View& view = lowering.view(node.inputs[at.w]);
    return groups > 1 ? *reshape(view, grouped(view.dims, groups)) : view;
}

// The picture that a convolution reads: as it lies where only padding channels of a border tensor
// are between its pixels (they become channels with zero weights), else dense.
View source(Lowering& lowering, const graph::Node& node, int64_t groups) {
    const View& view = lowering.view(node.inputs[0]);
    const auto padded = with_padding_channels(view);
    if (groups == 1 && padded && padded->dims[1] - view.dims[1] < 4 && view.offset == 0)
        return *padded;
    return lowering.dense(node.inputs[0], channels_last(view.dims.size()), view.type);
}

// Weights [O, I, k…] with channels of zeros behind the last input channel.
std::vector<int8_t> with_channels(const std::vector<int8_t>& weights, Dims& dims,
                                  int64_t channels) {
    if (dims[1] == channels) return weights;
    const auto outputs = static_cast<size_t>(dims[0]);
    const size_t from = weights.size() / outputs;
    const size_t to = from / static_cast<size_t>(dims[1]) * static_cast<size_t>(channels);
    std::vector<int8_t> result(outputs * to);
    for (size_t o = 0; o < outputs; ++o)
        std::copy_n(weights.begin() + static_cast<ptrdiff_t>(o * from), from,
                    result.begin() + static_cast<ptrdiff_t>(o * to));
    dims[1] = channels;
    return result;
}

// Convolution primitives for the bands of `whole`; nullopt where oneDNN has only its reference.
std::optional<std::vector<OnednnCall>> primitives(Lowering& lowering, const Convolution& whole,
                                                  const Int8Scaling& scaling,
                                                  const std::vector<Convolution>& parts,
                                                  bool adds = false) {
    WeightPacker packed(lowering, whole.weights);
    const auto any =
        memory::desc(whole.weights.dims, onednn_type(whole.weights.type), memory::format_tag::any);
    const bool has_bias = whole.bias.buffer >= 0;
    const int groups_mask = whole.weights.dims.size() > whole.dst.dims.size() ? 3 : 1;
    std::vector<OnednnCall> calls;
    for (const Convolution& p : parts) {
        const dnnl::convolution_forward::primitive_desc desc(
            cpu_engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
            descriptor(p.src), any, has_bias ? descriptor(p.bias) : memory::desc(),
            descriptor(p.dst), p.strides, p.dilations, p.pads_begin, p.pads_end,
            attributes(scaling, groups_mask, adds));
        if (is_reference(desc.impl_info_str())) return std::nullopt;
        OnednnCall call = onednn_call<dnnl::convolution_forward>(desc, p.src, p.dst);
        call.arguments.push_back(
            {DNNL_ARG_WEIGHTS, packed(desc.weights_desc()), desc.weights_desc()});
        if (has_bias) call.arguments.push_back({DNNL_ARG_BIAS, p.bias, desc.bias_desc()});
        add_operands(scaling, call);
        calls.push_back(std::move(call));
    }
    return calls;
}

std::vector<Convolution> cut_into_bands(const Lowering& lowering, const Convolution& p) {
    std::vector<Convolution> parts;
    const int64_t taps = p.weights.elements() / p.dst.dims[1];
    const bool depthwise = p.weights.dims.size() > p.dst.dims.size() && p.weights.dims[2] == 1;
    // Products of 8 bits are about three times as fast as those that the estimate knows, but not
    // where each is with a channel of its own.
    const int64_t cost =
        depthwise ? p.dst.elements() * taps / 25 : cost_ns(p, p.dst.elements() / p.dst.dims[1]) / 3;
    for (const Band& band : bands(p.dst.dims, cost, lowering.threads()))
        parts.push_back(forward_band(p, band));
    if (!reads_rows(parts)) parts = {p};
    return parts;
}

// What happens between sums and codes, in steps of the result.
struct BeforeCodes {
    std::optional<Eltwise> eltwise;
    std::optional<kernels::Epilogue> activation;
    std::vector<float> factors;
};

// Without an activation the factors are part of the scales.
BeforeCodes before_codes(const graph::Node& node, const std::optional<Coding>& y,
                         Int8Numbers& numbers) {
    const graph::BeforeCodes said = graph::read_before_codes(node);
    BeforeCodes result;
    if (said.activation) {
        result.eltwise = find_eltwise(*said.activation);
        result.activation = find_activation(*said.activation);
        result.factors = said.factors.empty() ? std::vector<float>(1, 1.0F) : said.factors;
        for (float& factor : result.factors) factor /= y->scale;
    } else if (!said.factors.empty()) {
        numbers.scales.resize(said.factors.size(), numbers.scales[0]);
        for (size_t i = 0; i < said.factors.size(); ++i) {
            numbers.scales[i] *= said.factors[i];
            if (!numbers.bias.empty()) numbers.bias[i] *= said.factors[i];
        }
    }
    return result;
}

// One number or one per channel, in the rank of the result.
View factors_view(Lowering& lowering, const std::vector<float>& factors, size_t rank) {
    Dims dims(rank, 1);
    dims[1] = static_cast<int64_t>(factors.size());
    const auto bytes = std::as_bytes(std::span(factors));
    return lowering.add_constant(DataType::float32, dims, channels_last(rank),
                                 Bytes(bytes.begin(), bytes.end()));
}

// By our own kernels, where oneDNN has only its reference.
void emit_exact_conv(Lowering& lowering, const graph::Node& node, const Convolution& p,
                     const std::vector<float>& weights) {
    GroupedShape shape = conv_shape(lowering, node, inputs_of(node).w);
    shape.shape.exact = true;
    const Dims dims = as_picture(lowering.value(node.inputs[inputs_of(node).w]).type.shape);
    const View src = *reshape(p.src, as_picture(p.src.dims)),
               dst = *reshape(p.dst, as_picture(p.dst.dims));
    const View packed = pack_conv_weights(
        lowering, shape, [weights, dims, shape, groups = node.get("group", int64_t{1})] {
            return ConvWeights{spread_groups(weights, dims, groups, shape), {}};
        });
    emit_direct_conv(lowering, node, shape, {}, src, packed, {}, dst);
}

// In floats, whose sums are exact as long as they are below 2^24, and nearly so above.
Result<void> lower_as_floats(Lowering& lowering, const graph::Node& node, Convolution p,
                             const std::vector<int16_t>& weights, const Int8Numbers& numbers,
                             const BeforeCodes& before, const Coding& x,
                             const std::optional<ComputedCoding>& computed,
                             const std::optional<Coding>& y) {
    const Inputs& at = inputs_of(node);
    const Dims& kernel = lowering.value(node.inputs[at.w]).type.shape;
    const int64_t groups = node.get("group", int64_t{1});
    const Order order = channels_last(kernel.size());
    const auto each = static_cast<int64_t>(weights.size()) / kernel[0];
    // Whole numbers must be exact; a float counts to 2^24.
    if (!y && each * 255 * 255 > int64_t{1} << 24) return lower_general(lowering, node);
    p.src = lowering.new_buffer(DataType::float32, p.src.dims, order);
    const std::vector<float> floats(weights.begin(), weights.end());
    p.weights = weights_view(lowering, floats, DataType::float32, kernel, groups);
    const View dst = p.dst;
    p.dst = lowering.new_buffer(DataType::float32, dst.dims, order);
    auto calls = primitives(lowering, p, {}, cut_into_bands(lowering, p));
    if (!calls) calls = primitives(lowering, p, {}, {p});
    if (!calls && !fits_kernels(as_picture(kernel))) return lower_general(lowering, node);
    if (computed)
        emit_dequantise(lowering, lowering.view(node.inputs[0]), p.src, *computed, node.name);
    else
        emit_dequantise(lowering, lowering.view(node.inputs[0]), p.src,
                        Coding{1, x.zero, x.is_signed}, node.name);
    if (calls)
        emit_onednn(lowering, node, std::move(*calls));
    else
        emit_exact_conv(lowering, node, p, floats);
    if (y && before.activation) {
        emit_requantise(lowering, p.dst, dst, kernel[0], numbers.scales, numbers.bias,
                        {*before.activation, before.factors}, *y, node.name);
    } else if (y) {
        emit_requantise(lowering, p.dst, dst, kernel[0], numbers.scales, numbers.bias, *y,
                        node.name);
    } else {
        emit_round(lowering, p.dst, dst, node.name);
    }
    lowering.finish(node.outputs[0], dst);
    return {};
}

}  // namespace

bool takes_quantised_conv(const graph::Graph& graph, const graph::Node& node) {
    const Inputs& at = inputs_of(node);
    const bool whole_numbers = node.kind == "ConvInteger";
    const size_t rank = graph.value(node.inputs[0]).type.shape.size();
    if ((rank != 3 && rank != 4) || !is_code(graph.value(node.inputs[0]).type.data_type))
        return false;
    if (!has_weights_of_codes(graph, node, at.w, at.wz, 0)) return false;
    if (whole_numbers) return has_one_zero_point(graph, node);
    const auto channels = static_cast<size_t>(graph.value(node.inputs[at.w]).type.shape[0]);
    const size_t scales = floats_of(graph, node, 4).size();
    const bool bias = node.inputs.size() > 8 && node.inputs[8] != graph::none;
    const auto activation = graph::read_before_codes(node).activation;
    if (activation && (!find_eltwise(*activation) || !find_activation(*activation))) return false;
    return coding_of(graph, node, 0) && coding_of_result(graph, node, 6) &&
           (scales == 1 || scales == channels) &&
           (!bias || integers_of(graph, node, 8).size() == channels);
}

Result<void> lower_quantised_conv(Lowering& lowering, const graph::Node& node) {
    const graph::Graph& graph = lowering.graph();
    const Inputs& at = inputs_of(node);
    const bool whole_numbers = node.kind == "ConvInteger";
    const Dims& kernel = lowering.value(node.inputs[at.w]).type.shape;
    const int64_t groups = node.get("group", int64_t{1});
    const auto centred = centred_weights(graph, node, at.w, at.wz, 0);
    const auto terms = int8_terms(centred);
    const DataType type = lowering.value(node.inputs[0]).type.data_type;
    Coding x{1, 0, type == DataType::int8};
    std::optional<Coding> y;
    Int8Numbers numbers;
    numbers.scales.assign(1, 1.0F);
    std::optional<ComputedCoding> computed;
    if (whole_numbers) {
        computed = computed_zero_point(lowering, node);
        const auto zero = integers_of(graph, node, 2);
        x.zero = zero.empty() ? 0 : static_cast<int32_t>(zero[0]);
    } else {
        x = *coding_of(graph, node, 0);
        y = coding_of_result(graph, node, 6);
        // An activation gets real numbers, what makes codes of them is among the factors.
        Coding real = *y;
        if (graph::read_before_codes(node).activation) real.scale = 1;
        numbers = int8_numbers(graph, node, x, real, 4, 8);
    }
    const BeforeCodes before = before_codes(node, y, numbers);
    if (y && terms.size() == 1) {
        const CodeConv conv{node, x, *y, numbers.scales, before.activation, before.factors};
        if (runs_code_conv(lowering, conv)) {
            lower_code_conv(lowering, conv);
            return {};
        }
    }
    const Order order = channels_last(kernel.size());
    Convolution p = geometry(lowering, node, at.w);
    p.dst = lowering.destination(node.outputs[0], order, false);
    p.src.dims = lowering.value(node.inputs[0]).type.shape;
    const bool fits = terms.size() == 1 || (whole_numbers && terms.size() == 2);
    if (!has_int8_products() || !fits)
        return lower_as_floats(lowering, node, p, centred, numbers, before, x, computed, y);
    p.src = source(lowering, node, groups);
    if (!numbers.bias.empty()) p.bias = bias_view(lowering, numbers.bias);
    Int8Scaling scaling = int8_scaling(lowering, numbers, x.zero, y ? y->zero : 0);
    scaling.activation = before.eltwise;
    if (!before.factors.empty())
        scaling.factors = factors_view(lowering, before.factors, kernel.size());
    if (computed) scaling.src_zero = emit_widened(lowering, computed->zero, node.name);
    try {
        std::vector<std::vector<OnednnCall>> sums;
        for (const std::vector<int8_t>& weights : terms) {
            const bool adds = !sums.empty();
            if (Dims padded = kernel; groups == 1 && p.src.dims[1] != kernel[1]) {
                const auto numbers_padded = with_channels(weights, padded, p.src.dims[1]);
                p.weights = weights_view(lowering, numbers_padded, DataType::int8, padded, 1);
            } else if (terms.size() == 1) {
                p.weights = codes_view(lowering, node, weights, groups);
            } else {
                p.weights = weights_view(lowering, weights, DataType::int8, kernel, groups);
            }
            auto calls = primitives(lowering, p, scaling, cut_into_bands(lowering, p), adds);
            if (!calls) calls = primitives(lowering, p, scaling, {p}, adds);
            if (!calls) break;
            sums.push_back(std::move(*calls));
        }
        if (sums.size() == terms.size()) {
            for (auto& calls : sums) emit_onednn(lowering, node, std::move(calls));
            lowering.finish(node.outputs[0], p.dst);
            return {};
        }
    } catch (const dnnl::error&) {
        // No primitive for these shapes.
    }
    p.bias = {};
    p.src.dims = lowering.value(node.inputs[0]).type.shape;
    return lower_as_floats(lowering, node, p, centred, numbers, before, x, computed, y);
}

}  // namespace vartml::softnpu
