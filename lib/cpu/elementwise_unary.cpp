// SPDX-License-Identifier: Apache-2.0
// One output element from one element: a table of formulas.
#include <algorithm>
#include <cmath>

#include "lib/cpu/arithmetic.h"
#include "lib/cpu/elementwise.h"

namespace vartml::cpu {

namespace {

Parameters parameters_of(const graph::Node& node) {
    const auto number = [&](const char* key) { return static_cast<double>(node.get(key, 0.0F)); };
    return {.alpha = number("alpha"),
            .beta = number("beta"),
            .gamma = number("gamma"),
            .bias = number("bias"),
            .lambd = number("lambd"),
            .detect_negative = node.get("detect_negative", int64_t{1}) != 0,
            .detect_positive = node.get("detect_positive", int64_t{1}) != 0};
}

// apply(x, parameters).
template <typename List, auto apply>
Result<void> with_parameters(const Call& call) {
    const Row row = find_unary_row<List, apply>(call.inputs[0].type);
    if (!row) return no_type(call, call.inputs[0].type);
    run_row(row, call.inputs, call.outputs[0], parameters_of(call.node));
    return {};
}

// A formula over the reals, apply(x) or apply(x, parameters), in double and rounded once.
template <auto apply>
constexpr auto rounded = [](auto x, const Parameters& p) {
    return graph::convert<decltype(x)>(apply_to<apply>(static_cast<double>(x), p));
};
template <auto apply, typename List = Floats>
Result<void> real(const Call& call) {
    return with_parameters<List, rounded<apply>>(call);
}

double sigmoid(double x) {
    return 1 / (1 + std::exp(-x));
}
double softplus(double x) {
    return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
}
double gelu(double x) {
    return 0.5 * x * (1 + std::erf(x / M_SQRT2));
}
double gelu_tanh(double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double shrink(double x, const Parameters& p) {
    return x < -p.lambd ? x + p.bias : x > p.lambd ? x - p.bias : 0;
}

Result<void> any_gelu(const Call& call) {
    return call.node.get("approximate", "none") == "tanh" ? real<gelu_tanh>(call)
                                                          : real<gelu>(call);
}

template <typename T>
T sign(T x) {
    return x > 0 ? T{1} : x < 0 ? static_cast<T>(-1) : x;  // a NaN stays one
}

template <typename T>
bool is_inf(T x, const Parameters& p) {
    return std::isinf(x) && (x < 0 ? p.detect_negative : p.detect_positive);
}

using SignedNumbers = Join<Signed, Floats>;

constexpr KernelRow kernels[] = {
    {"Abs", unary<Numbers, [](auto x) { return absolute(x); }>},
    {"Acos", real<[](double x) { return std::acos(x); }>},
    {"Acosh", real<[](double x) { return std::acosh(x); }>},
    {"Asin", real<[](double x) { return std::asin(x); }>},
    {"Asinh", real<[](double x) { return std::asinh(x); }>},
    {"Atan", real<[](double x) { return std::atan(x); }>},
    {"Atanh", real<[](double x) { return std::atanh(x); }>},
    {"BitwiseNot", unary<Integers, [](auto x) { return static_cast<decltype(x)>(~x); }>},
    {"Ceil", unary<Floats, [](auto x) { return std::ceil(x); }>},
    {"Celu", real<[](double x, const Parameters& p) {
         return x < 0 ? p.alpha * std::expm1(x / p.alpha) : x;
     }>},
    {"Cos", real<[](double x) { return std::cos(x); }>},
    {"Cosh", real<[](double x) { return std::cosh(x); }>},
    {"Elu",
     real<[](double x, const Parameters& p) { return x < 0 ? p.alpha * std::expm1(x) : x; }>},
    {"Erf", real<[](double x) { return std::erf(x); }, Numbers>},
    {"Exp", real<[](double x) { return std::exp(x); }>},
    {"Floor", unary<Floats, [](auto x) { return std::floor(x); }>},
    {"Gelu", any_gelu},
    {"HardSigmoid", real<[](double x, const Parameters& p) {
         return std::clamp(p.alpha * x + p.beta, 0.0, 1.0);
     }>},
    {"HardSwish", real<[](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }>},
    {"IsInf", with_parameters<Floats, [](auto x, const Parameters& p) { return is_inf(x, p); }>},
    {"IsNaN", unary<Floats, [](auto x) { return std::isnan(x); }>},
    {"LeakyRelu", real<[](double x, const Parameters& p) { return x < 0 ? x * p.alpha : x; }>},
    {"Log", real<[](double x) { return std::log(x); }>},
    {"Mish", real<[](double x) { return x * std::tanh(softplus(x)); }>},
    {"Neg", unary<SignedNumbers, [](auto x) { return negated(x); }>},
    {"Not", unary<Bools, [](bool x) { return !x; }>},
    {"QuickGelu", real<[](double x, const Parameters& p) { return x * sigmoid(p.alpha * x); }>},
    {"Reciprocal", unary<Floats, [](auto x) { return 1 / x; }>},
    {"Relu", unary<SignedNumbers, [](auto x) { return x < 0 ? decltype(x){} : x; }>},
    // Half to even, the rounding mode that every program starts in.
    {"Round", unary<Floats, [](auto x) { return std::nearbyint(x); }>},
    {"Selu", real<[](double x, const Parameters& p) {
         return p.gamma * (x < 0 ? p.alpha * std::expm1(x) : x);
     }>},
    {"Shrink", real<shrink, Numbers>},
    {"SiLU", real<[](double x) { return x * sigmoid(x); }>},
    {"Sigmoid", real<sigmoid>},
    {"Sign", unary<Numbers, [](auto x) { return sign(x); }>},
    {"Sin", real<[](double x) { return std::sin(x); }>},
    {"Sinh", real<[](double x) { return std::sinh(x); }>},
    {"Softplus", real<softplus>},
    {"Softsign", real<[](double x) { return x / (1 + std::fabs(x)); }>},
    {"Sqrt", unary<Floats, [](auto x) { return std::sqrt(x); }>},
    {"Tan", real<[](double x) { return std::tan(x); }>},
    {"Tanh", real<[](double x) { return std::tanh(x); }>},
    {"ThresholdedRelu",
     real<[](double x, const Parameters& p) { return (x > p.alpha) ? x : 0.0; }>},
};

}  // namespace

std::span<const KernelRow> unary_kernels() {
    return kernels;
}

}  // namespace vartml::cpu
