// SPDX-License-Identifier: Apache-2.0
// The quantised operators of com.microsoft that ONNX Runtime's quantize_static (QOperator),
// quantize_dynamic and optimisers write. Those with a kernel of their own are kept; the others
// become what they mean.
#include <algorithm>
#include <numeric>

#include "lib/compile/onnx/lower.h"

namespace vartml::onnx {
namespace {

ValueId zero_point(Builder& b, DataType type) {
    return b.constant(b.node() + "/zero_point", {type, {}},
                      graph::make_constant(std::vector<std::byte>(size_bytes(type))));
}

// Every scale of a QLinear operator is followed by a zero point, an absent one is 0.
void add_zero_points(Builder& b, OnnxNode& n) {
    const std::string& kind = n.proto.op_type();
    const bool concat = kind == "QLinearConcat";
    const size_t count = concat                                         ? n.inputs.size()
                         : kind == "QLinearAdd" || kind == "QLinearMul" ? 8
                                                                        : 5;
    const ValueId data = n.input(concat ? 2 : 0);
    if (data == graph::none) return;  // inference says what is missing
    n.inputs.resize(std::max(count, n.inputs.size()), graph::none);
    for (size_t i = 0; i < count; ++i) {
        const bool is_zero_point = concat ? i % 3 == 1 : i % 3 == 2 || i + 1 == count;
        if (is_zero_point && n.inputs[i] == graph::none)
            n.inputs[i] = zero_point(b, b.type(data).data_type);
    }
}

void keep_as(Builder& b, OnnxNode& n, const std::string& domain) {
    const ValueIds ids = b.emit_named(n.proto.op_type(), n.inputs, n.attributes, domain, n.outputs);
    for (size_t i = 0; i < n.outputs.size() && !b.error(); ++i) b.bind(n.outputs[i], ids[i]);
}

void keep(Builder& b, ModelFile&, OnnxNode& n) {
    add_zero_points(b, n);
    keep_as(b, n, n.domain);
}

ValueId dequantised(Builder& b, ValueId x, ValueId scale, ValueId zero) {
    return b.emit("DequantizeLinear", {x, scale, zero});
}
// `like`: whose type the codes have where there is no zero point.
ValueId quantised(Builder& b, ValueId x, ValueId scale, ValueId zero, ValueId like) {
    if (zero == graph::none) zero = zero_point(b, b.type(like).data_type);
    return b.emit("QuantizeLinear", {x, scale, zero});
}

// Channels last on both sides of what knows channels first only.
ValueId move_channels(Builder& b, ValueId x, bool to_front) {
    std::vector<int64_t> perm(b.type(x).shape.size());
    std::iota(perm.begin(), perm.end(), 0);
    if (perm.size() < 3) return x;
    if (to_front)
        std::rotate(perm.begin() + 1, perm.end() - 1, perm.end());
    else
        std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
    return b.emit("Transpose", {x}, {{"perm", perm}});
}

// An operator that may work on channels last; without `zeros` it is one of ONNX.
void in_channels_first(Builder& b, OnnxNode& n, const char* kind, const std::string& domain,
                       bool last) {
    n.attributes.erase("channels_last");
    if (last) n.inputs[0] = move_channels(b, n.input(0), true);
    const ValueId y = b.emit(kind, n.inputs, n.attributes, domain);
    if (b.error()) return;
    bind_first(b, n, last ? move_channels(b, y, false) : y);
}

void pool(Builder& b, ModelFile& file, OnnxNode& n) {
    const bool last = n.get("channels_last", int64_t{0}) != 0;
    n.attributes.erase("channels_last");
    if (!last) return keep(b, file, n);
    add_zero_points(b, n);
    in_channels_first(b, n, n.proto.op_type().c_str(), n.domain, last);
}

// ONNX's own, on channels last where the attribute says so; the weights are as ever.
void conv(Builder& b, ModelFile&, OnnxNode& n) {
    in_channels_first(b, n, "QLinearConv", {}, n.get("channels_last", int64_t{0}) != 0);
}
void max_pool_of_channels_last(Builder& b, ModelFile&, OnnxNode& n) {
    in_channels_first(b, n, "MaxPool", {}, true);
}

// Before set 13 it flattens; the operator of that set, on the real numbers.
void softmax(Builder& b, ModelFile& file, OnnxNode& n) {
    const auto rank = static_cast<int64_t>(b.type(n.input(0)).shape.size());
    const int64_t set = n.get("opset", int64_t{13});
    const int64_t axis = n.get("axis", set < 13 ? int64_t{1} : int64_t{-1});
    n.attributes.erase("opset");
    n.attributes["axis"] = axis;
    if (set >= 13 || axis == -1 || axis == rank - 1) return keep(b, file, n);
    const std::vector<int64_t> shape = b.type(n.input(0)).shape;
    const int64_t first = axis < 0 ? axis + rank : axis;
    if (first < 0 || first > rank || b.graph.value(n.input(0)).data_dependent)
        return b.fail(ErrorCode::unsupported,
                      "(QLinearSoftmax) flattens its input, whose shape depends on the data; "
                      "quantise a model of opset 13 or later");
    int64_t outer = 1;
    for (int64_t i = 0; i < first; ++i) outer *= shape[static_cast<size_t>(i)];
    const int64_t inner = outer == 0 ? 0 : b.type(n.input(0)).elements() / outer;
    const ValueId x = dequantised(b, n.input(0), n.input(1), n.input(2));
    const ValueId rows = b.emit("Reshape", {x, b.ints({outer, inner})});
    const ValueId powers = b.emit("Softmax", {rows}, {{"axis", int64_t{1}}});
    const ValueId y = b.emit("Reshape", {powers, b.ints(shape)});
    bind_first(b, n, quantised(b, y, n.input(3), n.input(4), n.input(0)));
}

// condition, x and y with scale and zero point each, then those of the result.
void where(Builder& b, ModelFile&, OnnxNode& n) {
    const ValueId x = dequantised(b, n.input(1), n.input(2), n.input(3));
    const ValueId y = dequantised(b, n.input(4), n.input(5), n.input(6));
    const ValueId chosen = b.emit("Where", {n.input(0), x, y});
    bind_first(b, n, quantised(b, chosen, n.input(7), n.input(8), n.input(1)));
}

void reduce_mean(Builder& b, ModelFile&, OnnxNode& n) {
    const ValueId x = dequantised(b, n.input(0), n.input(1), n.input(2));
    const ValueId mean = b.emit("ReduceMean", {x}, n.attributes);
    bind_first(b, n, quantised(b, mean, n.input(3), n.input(4), n.input(0)));
}

// ---- products

struct Product {
    ValueId lhs, lhs_scale, lhs_zero, rhs, rhs_scale, rhs_zero;
    ValueId integer_bias = graph::none;  // in units of both scales
};

// The real numbers of a product of codes, of the type of the scales; computed in f32.
ValueId real_product(Builder& b, const Product& p) {
    const DataType type = b.type(p.lhs_scale).data_type;
    const auto wide = [&](ValueId scale) { return cast_to(b, scale, DataType::float32); };
    ValueId sums = b.emit("MatMulInteger", {p.lhs, p.rhs, p.lhs_zero, p.rhs_zero});
    if (p.integer_bias != graph::none) sums = b.emit("Add", {sums, p.integer_bias});
    const ValueId reals = b.emit("Cast", {sums}, {{"to", std::string("f32")}});
    const ValueId scale = b.emit("Mul", {wide(p.lhs_scale), wide(p.rhs_scale)});
    return cast_to(b, b.emit("Mul", {reals, scale}), type);
}

ValueId plus(Builder& b, ValueId x, ValueId bias) {
    return bias == graph::none ? x : b.emit("Add", {x, bias});
}

void matmul_to_float(Builder& b, ModelFile&, OnnxNode& n) {
    const ValueId y = real_product(b, {.lhs = n.input(0),
                                       .lhs_scale = n.input(2),
                                       .lhs_zero = n.input(4),
                                       .rhs = n.input(1),
                                       .rhs_scale = n.input(3),
                                       .rhs_zero = n.input(5)});
    bind_first(b, n, plus(b, y, n.input(6)));
}

void dynamic_quantize_matmul(Builder& b, ModelFile&, OnnxNode& n) {
    const Codes codes = quantise_by_range(b, n.input(0));
    const ValueId y = real_product(b, {.lhs = codes.values,
                                       .lhs_scale = codes.scale,
                                       .lhs_zero = codes.zero_point,
                                       .rhs = n.input(1),
                                       .rhs_scale = n.input(2),
                                       .rhs_zero = n.input(3)});
    bind_first(b, n, plus(b, y, n.input(4)));
}

// A row of `columns` numbers, or a tensor of ones in front of it, as a list.
ValueId as_row(Builder& b, ValueId bias, int64_t columns) {
    const graph::Type& type = b.type(bias);
    if (type.shape.empty() || type.shape.back() != columns || type.elements() != columns)
        return graph::none;
    return b.emit("Reshape", {bias, b.ints({columns})});
}

// alpha * (a * b + c), c in units of both scales; without a scale of the result it is float.
void gemm(Builder& b, ModelFile&, OnnxNode& n) {
    const auto side = [&](size_t i, const char* transposed) {
        return n.get(transposed, int64_t{0}) != 0 ? swap_last_two(b, n.input(i)) : n.input(i);
    };
    const auto zero_of = [&](size_t i) {
        return n.input(i + 2) != graph::none ? n.input(i + 2)
                                             : zero_point(b, b.type(n.input(i)).data_type);
    };
    Product p{.lhs = side(0, "transA"),
              .lhs_scale = n.input(1),
              .lhs_zero = zero_of(0),
              .rhs = side(3, "transB"),
              .rhs_scale = n.input(4),
              .rhs_zero = zero_of(3),
              .integer_bias = n.input(6)};
    if (const float alpha = n.get("alpha", 1.0F); alpha != 1.0F)
        p.lhs_scale = b.emit("Mul", {p.lhs_scale, b.floats({}, {alpha})});
    if (b.error()) return;
    const ValueId scale = n.input(7);
    if (scale == graph::none) return bind_first(b, n, real_product(b, p));
    const ValueId zero =
        n.input(8) != graph::none ? n.input(8) : zero_point(b, b.type(n.input(0)).data_type);
    const std::vector<int64_t>& shape = b.type(p.rhs).shape;
    ValueIds inputs{p.lhs, p.lhs_scale, p.lhs_zero, p.rhs, p.rhs_scale, p.rhs_zero, scale, zero};
    if (p.integer_bias != graph::none) {
        const ValueId row = shape.empty() ? graph::none : as_row(b, p.integer_bias, shape.back());
        if (row == graph::none)
            return bind_first(b, n, b.emit("QuantizeLinear", {real_product(b, p), scale, zero}));
        inputs.push_back(row);
    }
    bind_first(b, n, b.emit("QLinearMatMul", inputs));
}

constexpr LowerRow rows[] = {
    {microsoft, "DynamicQuantizeMatMul", dynamic_quantize_matmul, ""},
    {microsoft, "MatMulIntegerToFloat", matmul_to_float, ""},
    {microsoft, "NhwcMaxPool", max_pool_of_channels_last},
    {microsoft, "QGemm", gemm, "alpha:f transA:i transB:i"},
    {microsoft, "QLinearAdd", keep},
    {microsoft, "QLinearAveragePool", pool},
    {microsoft, "QLinearConcat", keep},
    {microsoft, "QLinearConv", conv},
    {microsoft, "QLinearGlobalAveragePool", pool},
    {microsoft, "QLinearLeakyRelu", keep},
    {microsoft, "QLinearMul", keep},
    {microsoft, "QLinearReduceMean", reduce_mean},
    {microsoft, "QLinearSigmoid", keep},
    {microsoft, "QLinearSoftmax", softmax},
    {microsoft, "QLinearWhere", where, ""},
};

}  // namespace

std::span<const LowerRow> quantised_rows() {
    return rows;
}

}  // namespace vartml::onnx
