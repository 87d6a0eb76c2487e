// SPDX-License-Identifier: Apache-2.0
// Convolution and transposed convolution, channels-last, with bias, activation and residual in one
// primitive.
#include "lib/run/softnpu/lower_conv.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>

#include "lib/run/softnpu/border.h"
#include "lib/run/softnpu/conv_step.h"
#include "lib/run/softnpu/copy_step.h"
#include "lib/run/softnpu/direct_conv.h"
#include "lib/run/softnpu/lowering.h"
#include "lib/run/softnpu/onednn.h"
#include "lib/run/softnpu/operators.h"
#include "lib/run/softnpu/post_ops.h"

namespace vartml::softnpu {

namespace {

using dnnl::memory;

graph::ValueId input_or_none(const graph::Node& node, size_t i) {
    return i < node.inputs.size() ? node.inputs[i] : graph::none;
}

// The picture that a convolution reads: as it lies where channels are last (padding channels of a
// blocked border tensor become channels with zero weights), else copied.
View convolution_source(Lowering& lowering, const graph::Node& node, int64_t groups) {
    const graph::ValueId id = node.inputs[0];
    const View& view = lowering.view(id);
    const Order order = channels_last(view.dims.size());
    if (groups == 1 && lowering.is_whole_input(view)) {
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
void emit(Lowering& lowering, const graph::Node& node, const Convolution& whole,
          dnnl::algorithm algorithm, std::vector<Convolution> parts) {
    if (!reads_rows(parts)) parts = {whole};
    const auto any = memory::desc(whole.weights.dims, onednn_type(lowering.compute(node)),
                                  memory::format_tag::any);
    WeightPacker packed(lowering, whole.weights);
    const bool has_bias = whole.bias.buffer >= 0;
    std::vector<OnednnCall> calls;
    for (const Convolution& p : parts) {
        const typename Primitive::primitive_desc desc(
            cpu_engine(), dnnl::prop_kind::forward_inference, algorithm, descriptor(p.src), any,
            has_bias ? descriptor(p.bias) : memory::desc(), descriptor(p.dst), p.strides,
            p.dilations, p.pads_begin, p.pads_end, attributes(p.post));
        OnednnCall call = onednn_call<Primitive>(desc, p.src, p.dst);
        call.arguments.push_back(
            {DNNL_ARG_WEIGHTS, packed(desc.weights_desc()), desc.weights_desc()});
        if (has_bias) call.arguments.push_back({DNNL_ARG_BIAS, p.bias, desc.bias_desc()});
        add_operands(p.post, call);
        calls.push_back(std::move(call));
    }
    emit_onednn(lowering, node, std::move(calls));
}

// All of a convolution whose source and weights are there: what the node says of it, its result,
// and the padding at the end that makes the sizes fit. Output padding of a transposed one is a
// smaller end padding.
Result<void> complete(Lowering& lowering, const graph::Node& node, bool is_transposed,
                      Convolution& p) {
    const Dims& kernel = lowering.value(node.inputs[1]).type.shape;
    const size_t spatial = kernel.size() - 2;
    const Order order = channels_last(kernel.size());
    const graph::ValueId bias = input_or_none(node, 2);
    if (bias >= 0) p.bias = lowering.dense(bias, row_major(1), DataType::float32);
    p.dst = lowering.destination(node.outputs[0], order, false);
    p.dilations = node.get("dilations", Dims(spatial, 1));
    const Dims pads = node.get("pads", Dims(2 * spatial, 0));
    const Dims& positions = is_transposed ? p.src.dims : p.dst.dims;
    p.strides = conv_strides(node, positions);
    const Dims& covered = is_transposed ? p.dst.dims : p.src.dims;
    for (size_t i = 0; i < spatial; ++i) {
        const int64_t reach = (kernel[i + 2] - 1) * p.dilations[i] + 1;
        p.pads_begin.push_back(pads[i]);
        p.pads_end.push_back((positions[i + 2] - 1) * p.strides[i] + reach - covered[i + 2] -
                             pads[i]);
        --p.dilations[i];  // oneDNN counts the gaps
    }
    auto post = make_post_ops(lowering, node, order);
    if (!post) return post.error();
    p.post = std::move(*post);
    return {};
}

}  // namespace

Result<void> lower_conv(Lowering& lowering, const graph::Node& node) {
    if (runs_direct_conv(lowering, node)) return lower_direct_conv(lowering, node);
    const int64_t groups = node.get("group", int64_t{1});
    Convolution p;
    p.src = convolution_source(lowering, node, groups);
    p.weights = padded_weights(lowering, node, p.src.dims[1] / groups);
    if (groups > 1) p.weights = *reshape(p.weights, grouped(p.weights.dims, groups));
    if (auto ok = complete(lowering, node, false, p); !ok) return ok;
    std::vector<Convolution> parts;
    for (const Band& band :
         bands(p.dst.dims, cost_ns(p, p.dst.elements() / p.dst.dims[1]), lowering.threads())) {
        parts.push_back(forward_band(p, band));
    }
    emit<dnnl::convolution_forward>(lowering, node, p, dnnl::algorithm::convolution_auto,
                                    std::move(parts));
    lowering.finish(node.outputs[0], p.dst);
    return {};
}

Result<void> lower_conv_transpose(Lowering& lowering, const graph::Node& node) {
    if (runs_direct_conv_transpose(lowering, node)) {
        return lower_direct_conv_transpose(lowering, node);
    }
    const int64_t groups = node.get("group", int64_t{1});
    const size_t rank = lowering.value(node.inputs[1]).type.shape.size();
    Convolution p;
    p.src = lowering.dense(node.inputs[0], channels_last(rank), lowering.compute(node));
    // [C, O / groups, k…]
    View weights = lowering.dense(node.inputs[1], row_major(rank), DataType::float32);
    std::vector<int64_t> perm(rank);
    std::iota(perm.begin(), perm.end(), 0);
    std::swap(perm[0], perm[1]);
    if (groups > 1) {
        weights = *reshape(weights, grouped(weights.dims, groups));
        perm.push_back(static_cast<int64_t>(rank));
        perm[0] = 0, perm[1] = 2, perm[2] = 1;
    }
    p.weights = transpose(weights, perm);
    if (auto ok = complete(lowering, node, true, p); !ok) return ok;
    std::vector<Convolution> parts;
    for (const Band& band :
         bands(p.dst.dims, cost_ns(p, p.src.elements() / p.src.dims[1]), lowering.threads())) {
        parts.push_back(transposed_band(p, band));
    }
    emit<dnnl::deconvolution_forward>(lowering, node, p, dnnl::algorithm::deconvolution_direct,
                                      std::move(parts));
    lowering.finish(node.outputs[0], p.dst);
    return {};
}

namespace {

constexpr uint32_t kept_bits = 0xFFFF0000U, one = 0x10000U;
// What the square of the sum of the errors counts beside the sum of their squares: the square of
// the mean of what is read, as a part of its variance.
constexpr double weight_of_sum = 2;

// A weight between the two bf16 numbers beside it.
struct Neighbours {
    float nearer, other;
};

Neighbours neighbours_of(float weight) {
    const uint32_t bits = std::bit_cast<uint32_t>(weight);
    const auto inner = std::bit_cast<float>(bits & kept_bits);
    const auto outer = std::bit_cast<float>((bits & kept_bits) + one);
    const float to_inner = std::abs(weight - inner), to_outer = std::abs(outer - weight);
    const bool is_inner = to_inner < to_outer || (to_inner == to_outer && (bits & one) == 0);
    return is_inner ? Neighbours{inner, outer} : Neighbours{outer, inner};
}

// A weight that may go the other way.
struct Turn {
    float* weight;
    float other;
    float error;  // afterwards, as a part of the distance between the neighbours
    double cost;  // what it adds to the sum of the squares
};

void round_filter(std::span<float> filter) {
    double sum = 0;  // of the errors
    std::vector<Turn> turns;
    // The sum of n errors is about 0.3 sqrt(n) steps; turns that cost more are not worth it.
    const float most_error = 0.5F + 4 / std::sqrt(static_cast<float>(filter.size()));
    for (float& weight : filter) {
        const auto [nearer, other] = neighbours_of(weight);
        if (weight == nearer || !std::isfinite(weight) || !std::isfinite(other)) continue;
        const double before = static_cast<double>(nearer) - static_cast<double>(weight);
        const double after = static_cast<double>(other) - static_cast<double>(weight);
        const float error = std::abs(other - weight) / std::abs(other - nearer);
        if (error <= most_error)
            turns.push_back({&weight, other, error, after * after - before * before});
        sum += before;
        weight = nearer;
    }
    std::ranges::stable_sort(turns, {}, &Turn::error);
    for (const Turn& turn : turns) {
        const double after =
            sum + static_cast<double>(turn.other) - static_cast<double>(*turn.weight);
        if (weight_of_sum * (after * after - sum * sum) + turn.cost >= 0) continue;
        sum = after;
        *turn.weight = turn.other;
    }
}

}  // namespace

std::vector<float> round_filters(std::vector<float> weights, size_t num_filters) {
    const size_t size = weights.size() / num_filters;
    for (size_t i = 0; i < num_filters; ++i)
        round_filter(std::span(weights).subspan(i * size, size));
    return weights;
}

std::vector<float> rounded_weights(Lowering& lowering, graph::ValueId id) {
    const auto num_filters = static_cast<size_t>(lowering.value(id).type.shape[0]);
    return round_filters(floats(lowering, id), num_filters);
}

}  // namespace vartml::softnpu
