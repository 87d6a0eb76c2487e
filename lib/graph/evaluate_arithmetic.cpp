// SPDX-License-Identifier: Apache-2.0
// Element-wise arithmetic, reductions and products. Floats are computed in double and rounded once,
// which gives the correctly rounded result of the basic operations; integers in 64 bits, wrapping.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/graph/evaluate_rules.h"
#include "lib/graph/numbers.h"
#include "lib/graph/op_rules.h"

namespace vartml::graph {

namespace {

using Constants = std::vector<Constant>;

Error no_type(const Node& node, DataType type) {
    return {ErrorCode::unsupported, "node '" + node.name + "' (" + node.kind +
                                        ") cannot be folded for the type " +
                                        std::string(short_name(type))};
}

// ---- one input
// -----------------------------------------------------------------------------------------------------

// First and second attribute of the operators that have some, in the order of the names given.
struct Unary {
    std::string_view kind;
    double (*apply)(double x, double a, double b);
    const char *a = nullptr, *b = nullptr;
};
double sigmoid(double x) {
    return 1 / (1 + std::exp(-x));
}
double softplus(double x) {
    return x > 30 ? x : std::log1p(std::exp(x));
}

constexpr Unary unaries[] = {
    {"Abs", [](double x, double, double) { return std::fabs(x); }},
    {"Ceil", [](double x, double, double) { return std::ceil(x); }},
    {"Cos", [](double x, double, double) { return std::cos(x); }},
    {"Elu", [](double x, double a, double) { return x < 0 ? a * std::expm1(x) : x; }, "alpha"},
    {"Erf", [](double x, double, double) { return std::erf(x); }},
    {"Exp", [](double x, double, double) { return std::exp(x); }},
    {"Floor", [](double x, double, double) { return std::floor(x); }},
    {"HardSigmoid", [](double x, double a, double b) { return std::clamp(a * x + b, 0.0, 1.0); },
     "alpha", "beta"},
    {"HardSwish", [](double x, double, double) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
    {"Identity", [](double x, double, double) { return x; }},
    {"LeakyRelu", [](double x, double a, double) { return x < 0 ? a * x : x; }, "alpha"},
    {"Log", [](double x, double, double) { return std::log(x); }},
    {"Mish", [](double x, double, double) { return x * std::tanh(softplus(x)); }},
    {"Neg", [](double x, double, double) { return -x; }},
    {"Not", [](double x, double, double) { return x == 0 ? 1.0 : 0.0; }},
    {"Reciprocal", [](double x, double, double) { return 1 / x; }},
    {"Relu", [](double x, double, double) { return x < 0 ? 0 : x; }},
    {"Round", [](double x, double, double) { return std::nearbyint(x); }},
    {"SiLU", [](double x, double, double) { return x * sigmoid(x); }},
    {"Sigmoid", [](double x, double, double) { return sigmoid(x); }},
    {"Sign", [](double x, double, double) { return x > 0   ? 1.0
                                                   : x < 0 ? -1.0
                                                           : x; }},
    {"Sin", [](double x, double, double) { return std::sin(x); }},
    {"Softplus", [](double x, double, double) { return softplus(x); }},
    {"Sqrt", [](double x, double, double) { return std::sqrt(x); }},
    {"Tanh", [](double x, double, double) { return std::tanh(x); }},
};

Result<Constants> evaluate_unary(const Graph& graph, const Node& node) {
    const Unary& unary = *std::ranges::find(unaries, node.kind, &Unary::kind);
    const Value& x = graph.value(node.inputs[0]);
    // Doubles hold no large 64-bit integers, and no operator but these is of use for integers.
    constexpr std::string_view exact[] = {"Abs", "Identity", "Neg", "Not", "Relu", "Sign"};
    const bool wide = x.type.data_type == DataType::int64 || x.type.data_type == DataType::uint64;
    if (is_integral(x.type.data_type) && std::ranges::find(exact, node.kind) == std::end(exact)) {
        return no_type(node, x.type.data_type);
    }
    if (node.kind == "Identity") return Constants{*x.constant};
    auto numbers = read_numbers<double>(x);
    const double a = unary.a ? node.get(unary.a, 0.0F) : 0,
                 b = unary.b ? node.get(unary.b, 0.0F) : 0;
    for (double& v : numbers) {
        if (wide && std::fabs(v) > 9e15) return no_type(node, x.type.data_type);
        v = unary.apply(v, a, b);
    }
    return Constants{write_numbers<double>(output_type(graph, node).data_type, numbers)};
}

Result<Constants> evaluate_gelu(const Graph& graph, const Node& node) {
    auto numbers = read_numbers<double>(graph.value(node.inputs[0]));
    const bool tanh_form = node.get("approximate", "none") == "tanh";
    for (double& x : numbers) {
        const double inner = tanh_form ? std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))
                                       : std::erf(x / M_SQRT2);
        x = 0.5 * x * (1 + inner);
    }
    return Constants{write_numbers<double>(output_type(graph, node).data_type, numbers)};
}

template <typename T>
Constant clipped(const Graph& graph, const Node& node, T low, T high) {
    if (node.has("min")) low = static_cast<T>(node.get("min", 0.0F));
    if (node.has("max")) high = static_cast<T>(node.get("max", 0.0F));
    if (has_input(node, 1)) low = read_numbers<T>(graph.value(node.inputs[1]))[0];
    if (has_input(node, 2)) high = read_numbers<T>(graph.value(node.inputs[2]))[0];
    auto numbers = read_numbers<T>(graph.value(node.inputs[0]));
    for (T& v : numbers) v = std::min(std::max(v, low), high);
    return write_numbers<T>(output_type(graph, node).data_type, numbers);
}

Result<Constants> evaluate_clip(const Graph& graph, const Node& node) {
    if (is_integral(output_type(graph, node).data_type)) {
        using Limits = std::numeric_limits<int64_t>;
        return Constants{clipped<int64_t>(graph, node, Limits::min(), Limits::max())};
    }
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return Constants{clipped<double>(graph, node, -infinity, infinity)};
}

Result<Constants> evaluate_cast(const Graph& graph, const Node& node) {
    const Value& x = graph.value(node.inputs[0]);
    const DataType to = output_type(graph, node).data_type;
    if (is_integral(x.type.data_type)) {
        return Constants{write_numbers<int64_t>(to, read_numbers<int64_t>(x))};
    }
    return Constants{write_numbers<double>(to, read_numbers<double>(x))};
}

// ---- two and more inputs
// -------------------------------------------------------------------------------------------

struct Binary {
    std::string_view kind;
    double (*real)(double a, double b, bool fmod);        // nullptr: not for floats
    int64_t (*integer)(int64_t a, int64_t b, bool fmod);  // nullptr: not for integers
};

int64_t wrapping(uint64_t value) {
    return static_cast<int64_t>(value);
}
uint64_t u(int64_t value) {
    return static_cast<uint64_t>(value);
}

// Division by zero has no result in ONNX; 0 keeps the compiler alive.
int64_t divide(int64_t a, int64_t b) {
    return b == 0 ? 0 : b == -1 ? wrapping(0 - u(a)) : a / b;
}
int64_t modulo(int64_t a, int64_t b, bool like_c) {
    if (b == 0 || b == -1) return 0;
    const int64_t rest = a % b;
    return !like_c && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

constexpr Binary binaries[] = {
    {"Add", [](double a, double b, bool) { return a + b; },
     [](int64_t a, int64_t b, bool) { return wrapping(u(a) + u(b)); }},
    {"And", nullptr, [](int64_t a, int64_t b, bool) -> int64_t { return a && b; }},
    {"Div", [](double a, double b, bool) { return a / b; },
     [](int64_t a, int64_t b, bool) { return divide(a, b); }},
    {"Equal", [](double a, double b, bool) -> double { return a == b; },
     [](int64_t a, int64_t b, bool) -> int64_t { return a == b; }},
    {"Greater", [](double a, double b, bool) -> double { return a > b; },
     [](int64_t a, int64_t b, bool) -> int64_t { return a > b; }},
    {"GreaterOrEqual", [](double a, double b, bool) -> double { return a >= b; },
     [](int64_t a, int64_t b, bool) -> int64_t { return a >= b; }},
    {"Less", [](double a, double b, bool) -> double { return a < b; },
     [](int64_t a, int64_t b, bool) -> int64_t { return a < b; }},
    {"LessOrEqual", [](double a, double b, bool) -> double { return a <= b; },
     [](int64_t a, int64_t b, bool) -> int64_t { return a <= b; }},
    {"Max", [](double a, double b, bool) { return std::isnan(a) || a > b ? a : b; },
     [](int64_t a, int64_t b, bool) { return std::max(a, b); }},
    {"Min", [](double a, double b, bool) { return std::isnan(a) || a < b ? a : b; },
     [](int64_t a, int64_t b, bool) { return std::min(a, b); }},
    {"Mod",
     [](double a, double b, bool like_c) {
         return like_c ? std::fmod(a, b) : a - b * std::floor(a / b);
     },
     modulo},
    {"Mul", [](double a, double b, bool) { return a * b; },
     [](int64_t a, int64_t b, bool) { return wrapping(u(a) * u(b)); }},
    {"Or", nullptr, [](int64_t a, int64_t b, bool) -> int64_t { return a || b; }},
    {"PRelu", [](double a, double b, bool) { return a < 0 ? a * b : a; }, nullptr},
    {"Pow", [](double a, double b, bool) { return std::pow(a, b); },
     [](int64_t a, int64_t b, bool) {
         return static_cast<int64_t>(std::pow(static_cast<double>(a), static_cast<double>(b)));
     }},
    {"Sub", [](double a, double b, bool) { return a - b; },
     [](int64_t a, int64_t b, bool) { return wrapping(u(a) - u(b)); }},
    {"Sum", [](double a, double b, bool) { return a + b; }, nullptr},
    {"Xor", nullptr, [](int64_t a, int64_t b, bool) -> int64_t { return !a != !b; }},
};

template <typename T, typename F>
Constants combine(const Graph& graph, const Node& node, F apply) {
    const Type& y = output_type(graph, node);
    const bool like_c = node.get("fmod", int64_t{0}) != 0;
    std::vector<T> result(static_cast<size_t>(y.elements()));
    for (size_t input = 0; input < node.inputs.size(); ++input) {
        const Value& x = graph.value(node.inputs[input]);
        const auto numbers = read_numbers<T>(x);
        Walk walk(y.shape, {broadcast_strides(x.type.shape, y.shape)});
        for (T& v : result) {
            const T other = numbers[static_cast<size_t>(walk.offset(0))];
            v = input == 0 ? other : apply(v, other, like_c);
            walk.next();
        }
    }
    return Constants{write_numbers<T>(y.data_type, result)};
}

Result<Constants> evaluate_binary(const Graph& graph, const Node& node) {
    const Binary& binary = *std::ranges::find(binaries, node.kind, &Binary::kind);
    bool integral = true;
    for (const ValueId id : node.inputs) integral &= is_integral(graph.value(id).type.data_type);
    if (integral && binary.integer) return combine<int64_t>(graph, node, binary.integer);
    if (!integral && binary.real) return combine<double>(graph, node, binary.real);
    return no_type(node, input_type(graph, node, 0).data_type);
}

// ---- reductions
// ----------------------------------------------------------------------------------------------------

struct Reduction {
    std::string_view kind;
    double start;
    double (*add)(double sum, double x);
    double (*finish)(double sum, double count);
};
double as_is(double sum, double) {
    return sum;
}
double plus(double sum, double x) {
    return sum + x;
}

constexpr Reduction reductions[] = {
    {"ReduceL1", 0, [](double sum, double x) { return sum + std::fabs(x); }, as_is},
    {"ReduceL2", 0, [](double sum, double x) { return sum + x * x; },
     [](double sum, double) { return std::sqrt(sum); }},
    {"ReduceMax", -std::numeric_limits<double>::infinity(),
     [](double sum, double x) { return std::max(sum, x); }, as_is},
    {"ReduceMean", 0, plus, [](double sum, double count) { return sum / count; }},
    {"ReduceMin", std::numeric_limits<double>::infinity(),
     [](double sum, double x) { return std::min(sum, x); }, as_is},
    {"ReduceProd", 1, [](double sum, double x) { return sum * x; }, as_is},
    {"ReduceSum", 0, plus, as_is},
    {"ReduceSumSquare", 0, [](double sum, double x) { return sum + x * x; }, as_is},
};

Result<Constants> evaluate_reduce(const Graph& graph, const Node& node) {
    const Reduction& reduction = *std::ranges::find(reductions, node.kind, &Reduction::kind);
    const Value& x = graph.value(node.inputs[0]);
    const auto axes = node.get("axes", std::vector<int64_t>());
    // Strides of the result along the axes of the input: 0 along the reduced ones.
    std::vector<int64_t> shape = x.type.shape;
    for (const int64_t axis : axes) shape[static_cast<size_t>(axis)] = 1;
    Walk walk(x.type.shape, {broadcast_strides(shape, x.type.shape)});
    std::vector<double> sums(static_cast<size_t>(output_type(graph, node).elements()),
                             reduction.start);
    const auto numbers = read_numbers<double>(x);
    for (const double v : numbers) {
        double& sum = sums[static_cast<size_t>(walk.offset(0))];
        sum = reduction.add(sum, v);
        walk.next();
    }
    const double count =
        sums.empty() ? 0 : static_cast<double>(numbers.size()) / static_cast<double>(sums.size());
    for (double& sum : sums) sum = reduction.finish(sum, count);
    return Constants{write_numbers<double>(output_type(graph, node).data_type, sums)};
}

// ---- products
// ------------------------------------------------------------------------------------------------------

Result<Constants> evaluate_matmul(const Graph& graph, const Node& node) {
    const Value &a = graph.value(node.inputs[0]), &b = graph.value(node.inputs[1]);
    if (a.type.shape.size() < 2 || b.type.shape.size() < 2) return no_type(node, a.type.data_type);
    const Type& y = output_type(graph, node);
    const size_t rank = y.shape.size();
    const int64_t rows = y.shape[rank - 2], columns = y.shape[rank - 1],
                  depth = a.type.shape.back();
    const auto x = read_numbers<double>(a), w = read_numbers<double>(b);
    const auto bias = has_input(node, 2) ? read_numbers<double>(graph.value(node.inputs[2]))
                                         : std::vector<double>();
    const std::span<const int64_t> outer = std::span(y.shape).first(rank - 2);
    const auto outer_of = [&](const Type& type) {
        return std::span(type.shape).first(type.shape.size() - 2);
    };
    Walk walk(outer, {broadcast_strides(outer_of(a.type), outer),
                      broadcast_strides(outer_of(b.type), outer)});
    std::vector<double> result;
    result.reserve(static_cast<size_t>(y.elements()));
    while (result.size() < static_cast<size_t>(y.elements())) {
        const double* left = x.data() + walk.offset(0) * rows * depth;
        const double* right = w.data() + walk.offset(1) * depth * columns;
        for (int64_t r = 0; r < rows; ++r) {
            for (int64_t c = 0; c < columns; ++c) {
                double sum = bias.empty() ? 0 : bias[static_cast<size_t>(c)];
                for (int64_t k = 0; k < depth; ++k)
                    sum += left[r * depth + k] * right[k * columns + c];
                result.push_back(sum);
            }
        }
        walk.next();
    }
    return Constants{write_numbers<double>(y.data_type, result)};
}

constexpr Evaluator evaluators[] = {
    {"Abs", evaluate_unary},
    {"Add", evaluate_binary},
    {"And", evaluate_binary},
    {"Cast", evaluate_cast},
    {"Ceil", evaluate_unary},
    {"Clip", evaluate_clip},
    {"Cos", evaluate_unary},
    {"Div", evaluate_binary},
    {"Elu", evaluate_unary},
    {"Equal", evaluate_binary},
    {"Erf", evaluate_unary},
    {"Exp", evaluate_unary},
    {"Floor", evaluate_unary},
    {"Gelu", evaluate_gelu},
    {"Greater", evaluate_binary},
    {"GreaterOrEqual", evaluate_binary},
    {"HardSigmoid", evaluate_unary},
    {"HardSwish", evaluate_unary},
    {"Identity", evaluate_unary},
    {"LeakyRelu", evaluate_unary},
    {"Less", evaluate_binary},
    {"LessOrEqual", evaluate_binary},
    {"Log", evaluate_unary},
    {"MatMul", evaluate_matmul},
    {"Max", evaluate_binary},
    {"Min", evaluate_binary},
    {"Mish", evaluate_unary},
    {"Mod", evaluate_binary},
    {"Mul", evaluate_binary},
    {"Neg", evaluate_unary},
    {"Not", evaluate_unary},
    {"Or", evaluate_binary},
    {"PRelu", evaluate_binary},
    {"Pow", evaluate_binary},
    {"Reciprocal", evaluate_unary},
    {"ReduceL1", evaluate_reduce},
    {"ReduceL2", evaluate_reduce},
    {"ReduceMax", evaluate_reduce},
    {"ReduceMean", evaluate_reduce},
    {"ReduceMin", evaluate_reduce},
    {"ReduceProd", evaluate_reduce},
    {"ReduceSum", evaluate_reduce},
    {"ReduceSumSquare", evaluate_reduce},
    {"Relu", evaluate_unary},
    {"Round", evaluate_unary},
    {"SiLU", evaluate_unary},
    {"Sigmoid", evaluate_unary},
    {"Sign", evaluate_unary},
    {"Sin", evaluate_unary},
    {"Softplus", evaluate_unary},
    {"Sqrt", evaluate_unary},
    {"Sub", evaluate_binary},
    {"Sum", evaluate_binary},
    {"Tanh", evaluate_unary},
    {"Xor", evaluate_binary},
};

}  // namespace

std::span<const Evaluator> arithmetic_evaluators() {
    return evaluators;
}

}  // namespace vartml::graph
