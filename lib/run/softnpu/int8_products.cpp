// SPDX-License-Identifier: Apache-2.0
#include "lib/run/softnpu/int8_products.h"

namespace vartml::softnpu {
namespace {

template <typename T>
View constant(Lowering& lowering, DataType type, const std::vector<T>& numbers) {
    const auto bytes = std::as_bytes(std::span(numbers));
    return lowering.add_constant(type, {static_cast<int64_t>(numbers.size())}, row_major(1),
                                 Bytes(bytes.begin(), bytes.end()));
}

View zero_view(Lowering& lowering, int32_t zero) {
    if (zero == 0) return {};
    const std::vector<int32_t> numbers(1, zero);
    return constant(lowering, DataType::int32, numbers);
}

}  // namespace

bool is_reference(std::string_view implementation) {
    return implementation.find("ref") != std::string_view::npos;
}

Int8Numbers int8_numbers(const graph::Graph& graph, const graph::Node& node, const Coding& x,
                         const Coding& y, size_t scale, size_t bias) {
    Int8Numbers numbers;
    for (const float w : floats_of(graph, node, scale))
        numbers.scales.push_back(x.scale * w / y.scale);
    const auto added = integers_of(graph, node, bias);
    for (size_t i = 0; i < added.size(); ++i) {
        const double by = numbers.scales[numbers.scales.size() == 1 ? 0 : i];
        numbers.bias.push_back(static_cast<float>(static_cast<double>(added[i]) * by));
    }
    return numbers;
}

std::optional<Coding> coding_of_result(const graph::Graph& graph, const graph::Node& node,
                                       size_t scale) {
    return coding_of(graph, node, graph.value(node.outputs[0]).type.data_type, scale, scale + 1);
}

bool has_one_zero_point(const graph::Graph& graph, const graph::Node& node) {
    return node.inputs.size() < 3 || node.inputs[2] == graph::none ||
           graph.value(node.inputs[2]).type.elements() == 1;
}

std::optional<ComputedCoding> computed_zero_point(Lowering& lowering, const graph::Node& node) {
    const bool has_zero = node.inputs.size() > 2 && node.inputs[2] != graph::none;
    if (!has_zero || lowering.value(node.inputs[2]).constant) return std::nullopt;
    const auto& [type, shape] = lowering.value(node.inputs[2]).type;
    return ComputedCoding{
        {}, lowering.dense(node.inputs[2], row_major(shape.size()), type), type == DataType::int8};
}

Int8Scaling int8_scaling(Lowering& lowering, const Int8Numbers& numbers, int32_t src_zero,
                         int32_t dst_zero) {
    Int8Scaling result;
    result.src_zero = zero_view(lowering, src_zero);
    result.dst_zero = zero_view(lowering, dst_zero);
    if (numbers.scales.size() > 1 || numbers.scales[0] != 1)
        result.scales = constant(lowering, DataType::float32, numbers.scales);
    return result;
}

View bias_view(Lowering& lowering, const std::vector<float>& bias) {
    return constant(lowering, DataType::float32, bias);
}

dnnl::primitive_attr attributes(const Int8Scaling& scaling, int mask, bool adds) {
    dnnl::primitive_attr attr;
    dnnl::post_ops ops;
    if (adds) ops.append_sum();
    if (scaling.activation)
        ops.append_eltwise(scaling.activation->algorithm, scaling.activation->alpha,
                           scaling.activation->beta);
    if (scaling.factors.buffer >= 0)
        ops.append_binary(dnnl::algorithm::binary_mul, descriptor(scaling.factors));
    // Half a step is rounded to the even one before the zero point is added, as ONNX has it; oneDNN
    // rounds the sum of both.
    if (scaling.dst_zero.buffer >= 0) ops.append_eltwise(dnnl::algorithm::eltwise_round, 0, 0);
    attr.set_post_ops(ops);
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const bool several = scaling.scales.buffer >= 0 && scaling.scales.dims[0] > 1;
    if (scaling.scales.buffer >= 0) attr.set_scales_mask(DNNL_ARG_WEIGHTS, several ? mask : 0);
    if (scaling.src_zero.buffer >= 0) attr.set_zero_points_mask(DNNL_ARG_SRC, 0);
    if (scaling.dst_zero.buffer >= 0) attr.set_zero_points_mask(DNNL_ARG_DST, 0);
    return attr;
}

void add_operands(const Int8Scaling& scaling, OnednnCall& call) {
    const auto add = [&](int id, const View& view) {
        if (view.buffer >= 0) call.arguments.push_back({id, view, descriptor(view)});
    };
    add(DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, scaling.scales);
    add(DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, scaling.src_zero);
    add(DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_DST, scaling.dst_zero);
    // Behind the activation, in a product that adds to nothing.
    add(DNNL_ARG_ATTR_MULTIPLE_POST_OP(scaling.activation ? 1 : 0) | DNNL_ARG_SRC_1,
        scaling.factors);
}

}  // namespace vartml::softnpu
