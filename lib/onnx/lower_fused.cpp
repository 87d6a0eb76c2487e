// SPDX-License-Identifier: Apache-2.0
// The operators of com.microsoft that ONNX Runtime's optimisers make of several.
#include <cmath>
#include <numeric>
#include <optional>

#include "lib/onnx/lower_rows.h"

namespace vartml::onnx {
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
        y = b.emit("Mul", {y, b.floats({}, {alpha})});
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
