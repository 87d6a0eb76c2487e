// SPDX-License-Identifier: Apache-2.0
// The operators of com.microsoft that ONNX Runtime's optimisers make of several.
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "lib/compile/onnx/lower.h"

namespace vartml::onnx {

// Operators of the first ONNX that were never standardised: converters of WinML and Core ML models
// wrote them, and ONNX Runtime still runs them.
namespace {

ValueId times(Builder& b, ValueId x, float factor) {
    return factor == 1 ? x : b.emit("Mul", {x, number(b, factor, x)});
}

// alpha * x + beta
void affine(Builder& b, ModelFile&, OnnxNode& n) {
    const ValueId scaled = b.emit("Mul", {n.input(0), number(b, n.get("alpha", 1.0F), n.input(0))});
    bind_first(b, n, b.emit("Add", {scaled, number(b, n.get("beta", 0.0F), scaled)}));
}

// Of a picture NCHW: `border` (left, top, right, bottom) goes; with `scale` (height, width) that
// much stays behind the left and the top one.
void crop(Builder& b, ModelFile&, OnnxNode& n) {
    using Ints = std::vector<int64_t>;
    const Ints border = n.get("border", Ints{}), scale = n.get("scale", Ints{});
    const Ints shape = b.type(n.input(0)).shape;
    if (shape.size() != 4 || border.size() != 4 || (!scale.empty() && scale.size() != 2))
        return b.fail(ErrorCode::bad_model, "(Crop) has " + std::to_string(border.size()) +
                                                " borders and " + std::to_string(scale.size()) +
                                                " sizes for a tensor of rank " +
                                                std::to_string(shape.size()) +
                                                ", expected 4 borders and 0 or 2 sizes for rank 4");
    Ints starts{border[1], border[0]}, ends{shape[2] - border[3], shape[3] - border[2]};
    if (!scale.empty()) ends = {starts[0] + scale[0], starts[1] + scale[1]};
    for (size_t i = 0; i < 2; ++i)
        if (starts[i] < 0 || starts[i] >= ends[i] || ends[i] > shape[i + 2])
            return b.fail(ErrorCode::bad_model, "(Crop) takes " + std::to_string(starts[i]) +
                                                    " to " + std::to_string(ends[i]) + " of axis " +
                                                    std::to_string(i + 2) + " of " +
                                                    to_string(b.type(n.input(0))));
    // Of a size that only the run knows.
    if (scale.empty() && b.graph.value(n.input(0)).data_dependent)
        for (size_t i = 0; i < 2; ++i)
            ends[i] = border[3 - i] ? -border[3 - i] : std::numeric_limits<int64_t>::max();
    bind_first(b, n, b.emit("Slice", {n.input(0), b.ints(starts), b.ints(ends), b.ints({2, 3})}));
}

// x * scale + bias[c]
void image_scaler(Builder& b, ModelFile&, OnnxNode& n) {
    ValueId y = b.emit("Mul", {n.input(0), number(b, n.get("scale", 1.0F), n.input(0))});
    if (const auto bias = n.get("bias", std::vector<float>{}); !bias.empty())
        y = b.emit("Add", {y, cast_to(b, b.floats({static_cast<int64_t>(bias.size()), 1, 1}, bias),
                                      b.type(y).data_type)});
    bind_first(b, n, y);
}

// alpha * ln(exp(beta * x) + 1)
void parametric_softplus(Builder& b, ModelFile&, OnnxNode& n) {
    const ValueId y = b.emit("Softplus", {times(b, n.input(0), n.get("beta", 1.0F))});
    bind_first(b, n, times(b, y, n.get("alpha", 1.0F)));
}

// alpha * tanh(beta * x)
void scaled_tanh(Builder& b, ModelFile&, OnnxNode& n) {
    const ValueId y = b.emit("Tanh", {times(b, n.input(0), n.get("beta", 1.0F))});
    bind_first(b, n, times(b, y, n.get("alpha", 1.0F)));
}

constexpr LowerRow experimental_table[] = {
    {"", "Affine", affine, "alpha:f beta:f"},
    {"", "Crop", crop, "border:is scale:is"},
    {"", "ImageScaler", image_scaler, "bias:fs scale:f"},
    {"", "ParametricSoftplus", parametric_softplus, "alpha:f beta:f"},
    {"", "ScaledTanh", scaled_tanh, "alpha:f beta:f"},
};

}  // namespace

std::span<const LowerRow> experimental_rows() {
    return experimental_table;
}

namespace {

using Numbers = std::vector<std::optional<float>>;

// An activation that another operator carries, with its numbers in the order alpha, beta, gamma.
// For Clip they are its bounds.
ValueId activate(Builder& b, const OnnxNode& n, ValueId y, const std::string& name,
                 const Numbers& numbers) {
    struct Activation {
        std::string_view name;
        std::vector<const char*> attributes;
    };
    static const Activation known[] = {
        {"Relu", {}},
        {"Sigmoid", {}},
        {"Tanh", {}},
        {"Softplus", {}},
        {"Softsign", {}},
        {"LeakyRelu", {"alpha"}},
        {"Elu", {"alpha"}},
        {"ThresholdedRelu", {"alpha"}},
        {"Celu", {"alpha"}},
        {"HardSigmoid", {"alpha", "beta"}},
        {"Selu", {"alpha", "gamma"}},
    };
    const auto given = [&](size_t i) { return i < numbers.size() ? numbers[i] : std::nullopt; };
    if (name.empty()) return y;
    if (name == "Clip")
        return b.emit("Clip", {y, b.floats({}, {given(0).value_or(-INFINITY)}),
                               b.floats({}, {given(1).value_or(INFINITY)})});
    for (const Activation& activation : known) {
        if (activation.name != name) continue;
        Attributes attributes;
        for (size_t i = 0; i < activation.attributes.size(); ++i) {
            const bool third = std::string_view(activation.attributes[i]) == "gamma";
            if (const auto number = given(third ? 2 : i))
                attributes[activation.attributes[i]] = *number;
        }
        return b.emit(name, {y}, attributes);
    }
    b.fail(ErrorCode::unsupported,
           "(" + n.proto.op_type() + ") has the activation '" + name +
               "', which is not known; save the model with ONNX Runtime's optimisation level "
               "'basic' or 'disable_all'");
    return y;
}

// Conv, plus a fourth input that is added, and an activation by name.
void conv(Builder& b, ModelFile&, OnnxNode& n) {
    const std::string activation = n.get("activation", "");
    Numbers numbers;
    for (const float number : n.get("activation_params", std::vector<float>{}))
        numbers.emplace_back(number);
    if (activation == "Selu" && numbers.size() == 2) numbers = {numbers[0], {}, numbers[1]};
    n.attributes.erase("activation");
    n.attributes.erase("activation_params");
    ValueId y = b.emit("Conv", {n.input(0), n.input(1), n.input(2)}, n.attributes);
    if (n.input(3) != graph::none) y = b.emit("Add", {y, n.input(3)});
    bind_first(b, n, activate(b, n, y, activation, numbers));
}

void gemm(Builder& b, ModelFile&, OnnxNode& n) {
    const std::string activation = n.get("activation", "");
    n.attributes.erase("activation");
    Numbers numbers;
    for (const char* key : {"activation_alpha", "activation_beta", "activation_gamma"}) {
        const auto found = n.attributes.find(key);
        const bool given = found != n.attributes.end();
        numbers.push_back(given ? std::optional(n.get(key, 0.0F)) : std::nullopt);
        if (given) n.attributes.erase(found);
    }
    const ValueId y = b.emit("Gemm", n.inputs, n.attributes);
    bind_first(b, n, activate(b, n, y, activation, numbers));
}

// The first dimension goes behind the others of the batch.
ValueId move_batch(Builder& b, ValueId x) {
    std::vector<int64_t> order(b.type(x).shape.size());
    if (order.size() < 3) return x;
    std::iota(order.begin(), order.end() - 2, 1);
    order[order.size() - 2] = 0;
    order.back() = static_cast<int64_t>(order.size()) - 1;
    return b.emit("Transpose", {x}, {{"perm", order}});
}

void matmul(Builder& b, ModelFile&, OnnxNode& n) {
    const auto side = [&](size_t i, const char* batch, const char* matrix) {
        ValueId x = n.input(i);
        if (n.get(batch, int64_t{0}) != 0) x = move_batch(b, x);
        return n.get(matrix, int64_t{0}) != 0 ? swap_last_two(b, x) : x;
    };
    ValueId y =
        b.emit("MatMul", {side(0, "transBatchA", "transA"), side(1, "transBatchB", "transB")});
    if (const float alpha = n.get("alpha", 1.0F); alpha != 1.0F)
        y = b.emit("Mul", {y, number(b, alpha, y)});
    bind_first(b, n, y);
}

constexpr LowerRow rows[] = {
    {microsoft, "FusedConv", conv},
    {microsoft, "FusedGemm", gemm},
    {microsoft, "FusedMatMul", matmul, "alpha:f transA:i transB:i transBatchA:i transBatchB:i"},
    {microsoft, "TransposeMatMul", matmul, "alpha:f transA:i transB:i"},
};

}  // namespace

std::span<const LowerRow> fused_rows() {
    return rows;
}

}  // namespace vartml::onnx
