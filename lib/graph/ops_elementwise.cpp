// SPDX-License-Identifier: Apache-2.0
// One output element from one element of each input: operators with types or inputs of their own,
// then those of one formula.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "lib/graph/numbers.h"
#include "lib/graph/ops.h"
#include "lib/graph/typed.h"
#include "lib/graph/walk.h"

namespace vartml::graph {
namespace {

Result<Types> infer_compare(const Graph& graph, const Node& node) {
    auto types = infer_broadcast(graph, node);
    if (types) types->front().data_type = DataType::boolean;
    return types;
}

Result<Types> infer_predicate(const Graph& graph, const Node& node) {
    return Types{{DataType::boolean, input_type(graph, node, 0).shape}};
}

Result<Types> infer_shift(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    auto shape = broadcast(x.shape, input_type(graph, node, 1).shape);
    if (!shape) {
        return bad_node(node, "has inputs " + to_string(x) + " and " +
                                  to_string(input_type(graph, node, 1)) +
                                  ", which do not broadcast");
    }
    return Types{{x.data_type, std::move(*shape)}};
}

Result<Types> infer_prelu(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    if (broadcast(x.shape, input_type(graph, node, 1).shape) != x.shape) {
        return bad_node(node, "has the slope " + to_string(input_type(graph, node, 1)) +
                                  ", which does not broadcast to " + to_string(x));
    }
    return Types{x};
}

Result<Types> infer_where(const Graph& graph, const Node& node) {
    const Type &condition = input_type(graph, node, 0), &a = input_type(graph, node, 1),
               &b = input_type(graph, node, 2);
    auto shape = broadcast(a.shape, b.shape);
    if (shape) shape = broadcast(*shape, condition.shape);
    if (!shape || a.data_type != b.data_type || condition.data_type != DataType::boolean) {
        return bad_node(node, "has inputs " + to_string(condition) + ", " + to_string(a) + " and " +
                                  to_string(b) +
                                  ", expected a bool and two of one type that broadcast");
    }
    return Types{{a.data_type, std::move(*shape)}};
}

Result<Types> infer_clip(const Graph& graph, const Node& node) {
    for (size_t i = 1; i < node.inputs.size(); ++i) {
        if (has_input(node, i) && input_type(graph, node, i).elements() != 1) {
            return bad_node(node, "has the bound " + to_string(input_type(graph, node, i)) +
                                      ", expected a scalar");
        }
    }
    return infer_same(graph, node);
}

Result<Types> infer_cast(const Graph& graph, const Node& node) {
    const std::string to = node.get("to", "");
    const auto type = parse_short_name(to);
    if (!type) return bad_node(node, "casts to '" + to + "', expected a type such as f32 or i64");
    return Types{{*type, input_type(graph, node, 0).shape}};
}

}  // namespace
}  // namespace vartml::graph

namespace vartml::cpu {
namespace {

// What the element-wise kernels share. One formula is one short loop per type, a row; all that is
// around it (broadcasting, the halves, several inputs) is no template.

// Attributes of the operators that have some.
struct Parameters {
    double alpha = 0, beta = 0, gamma = 0, bias = 0, lambd = 0;
    bool detect_negative = true, detect_positive = true;
};

// y[i] of x[0][i], x[1][i] …, for i below n; y may be x[0].
using Row = void (*)(const std::byte* const* x, std::byte* y, int64_t n, const Parameters& p);

// Runs a row over the one or two inputs, which broadcast to the output; the first may be the
// output. A row sees float in place of bf16 and f16.
void run_row(Row row, std::span<const Array> inputs, const Array& y, const Parameters& p = {});
// Over any number of inputs of one type: from the left, and the halves are rounded at the end only.
// `divide`, if there is one, divides the result by the number of inputs.
void run_row_over_all(Row row, Row divide, std::span<const Array> inputs, const Array& y);

template <typename T>
using RowElement =
    std::conditional_t<std::is_same_v<T, Bf16> || std::is_same_v<T, _Float16>, float, T>;
template <typename T, typename Value>
using Stored = std::conditional_t<std::is_same_v<Value, bool>, Bool, T>;

// apply(x) or apply(x, parameters); a result of bool makes an output of bools.
template <auto apply, typename X>
auto apply_to(X x, [[maybe_unused]] const Parameters& p) {
    if constexpr (std::is_invocable_v<decltype(apply), X>)
        return apply(x);
    else
        return apply(x, p);
}
template <typename T, auto apply>
void unary_row(const std::byte* const* inputs, std::byte* output, int64_t n, const Parameters& p) {
    using Y = Stored<T, decltype(apply_to<apply>(Work<T>(), p))>;
    const T* x = reinterpret_cast<const T*>(inputs[0]);
    Y* y = reinterpret_cast<Y*>(output);
    for (int64_t i = 0; i < n; ++i) y[i] = store<Y>(apply_to<apply>(load(x[i]), p));
}

// apply(a, b), likewise.
template <typename A, typename B, auto apply>
void binary_row(const std::byte* const* inputs, std::byte* output, int64_t n, const Parameters&) {
    using Y = Stored<A, decltype(apply(Work<A>(), Work<B>()))>;
    const A* a = reinterpret_cast<const A*>(inputs[0]);
    const B* b = reinterpret_cast<const B*>(inputs[1]);
    Y* y = reinterpret_cast<Y*>(output);
    for (int64_t i = 0; i < n; ++i) y[i] = store<Y>(apply(load(a[i]), load(b[i])));
}

// The row for a type of the list, nullptr for another type.
template <typename List, auto apply>
Row find_unary_row(DataType type) {
    Row row = nullptr;
    with_type_of<List>(type, [&]<typename T>(T) { row = unary_row<RowElement<T>, apply>; });
    return row;
}
template <typename List, auto apply>
Row find_binary_row(DataType type) {
    Row row = nullptr;
    with_type_of<List>(
        type, [&]<typename T>(T) { row = binary_row<RowElement<T>, RowElement<T>, apply>; });
    return row;
}

template <typename List, auto apply>
Result<void> unary(const Call& call) {
    const Row row = find_unary_row<List, apply>(call.inputs[0].type);
    if (!row) return no_type(call, call.inputs[0].type);
    run_row(row, call.inputs, call.outputs[0]);
    return {};
}

template <typename List, auto apply>
Result<void> binary(const Call& call) {
    const Row row = find_binary_row<List, apply>(call.inputs[0].type);
    if (!row || call.inputs[1].type != call.inputs[0].type)
        return no_type(call, call.inputs[1].type);
    run_row(row, call.inputs, call.outputs[0]);
    return {};
}

void copy(const Array& from, const Array& to) {
    if (from.data != to.data) std::memcpy(to.data, from.data, to.size_bytes());
}

Result<void> identity(const Call& call) {
    copy(call.inputs[0], call.outputs[0]);
    return {};
}

template <typename X, typename Y>
void convert_all(const Array& x, const Array& y) {
    const X* from = x.as<X>();
    for (Y& to : y.span<Y>()) to = graph::convert<Y>(*from++);
}

Result<void> cast(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    if (x.type == y.type) return identity(call);
    return for_type<AllTypes>(call, x.type, [&]<typename X>(X) {
        graph::with_type(y.type, [&]<typename Y>(Y) {
            if constexpr (!std::is_same_v<X, Y>) convert_all<X, Y>(x, y);
        });
    });
}

// A NaN stays one; the upper bound wins where the two cross.
template <typename T>
void clip_all(const Array& x, const Array& y, Work<T> low, Work<T> high) {
    const T* from = x.as<T>();
    for (T& to : y.span<T>()) {
        const Work<T> value = load(*from++), raised = value < low ? low : value;
        to = store<T>(raised > high ? high : raised);
    }
}

Result<void> clip(const Call& call) {
    return for_type<Numbers>(call, call.inputs[0].type, [&]<typename T>(T) {
        using Limits = std::numeric_limits<Work<T>>;
        Work<T> low = Limits::has_infinity ? -Limits::infinity() : Limits::min();
        Work<T> high = Limits::has_infinity ? Limits::infinity() : Limits::max();
        const auto take = [&](size_t input, const char* key, Work<T>& bound) {
            if (call.node.has(key)) bound = graph::convert<Work<T>>(call.node.get(key, 0.0F));
            if (call.has_input(input)) bound = load(*call.inputs[input].as<T>());
        };
        take(1, "min", low);
        take(2, "max", high);
        clip_all<T>(call.inputs[0], call.outputs[0], low, high);
    });
}

// Types of one size are one type here.
template <typename F>
Result<void> for_size(const Call& call, DataType type, F&& f) {
    switch (size_bytes(type)) {
        case 1:
            f(uint8_t());
            return {};
        case 2:
            f(uint16_t());
            return {};
        case 4:
            f(uint32_t());
            return {};
        case 8:
            f(uint64_t());
            return {};
        default:
            return no_type(call, type);
    }
}

Result<void> where(const Call& call) {
    const Array& y = call.outputs[0];
    return for_size(call, y.type, [&]<typename T>(T) {
        const Runs<3> runs(y.shape,
                           {call.inputs[0].shape, call.inputs[1].shape, call.inputs[2].shape});
        const int64_t step_c = runs.step(0), step_a = runs.step(1), step_b = runs.step(2);
        runs.for_each([&](int64_t at, const std::array<int64_t, 3>& offsets) {
            const Bool* c = call.inputs[0].as<Bool>() + offsets[0];
            const T* a = call.inputs[1].as<T>() + offsets[1];
            const T* b = call.inputs[2].as<T>() + offsets[2];
            T* to = y.as<T>() + at;
            for (int64_t i = 0; i < runs.length(); ++i)
                to[i] = c[i * step_c].byte != 0 ? a[i * step_a] : b[i * step_b];
        });
    });
}

// Integers to the power of integers, exact and wrapping; the reciprocal of 1 and -1 alone is one.
template <typename T, typename E>
T integer_power(T base, E exponent) {
    if (exponent < 0) {
        const bool odd = exponent % 2 != 0;
        if (base == 1) return 1;
        if constexpr (std::is_signed_v<T>)
            if (base == -1) return odd ? T{-1} : T{1};
        return 0;
    }
    auto factor = static_cast<Wrapping<T>>(base);
    Wrapping<T> power = 1;
    for (auto left = static_cast<uint64_t>(exponent); left != 0; left >>= 1) {
        if (left & 1) power *= factor;
        factor *= factor;
    }
    return static_cast<T>(power);
}

template <typename T, typename E>
T raised(T base, E exponent) {
    if constexpr (std::is_floating_point_v<T> || std::is_floating_point_v<E>)
        return graph::convert<T>(
            std::pow(static_cast<double>(base), static_cast<double>(exponent)));
    else
        return integer_power(base, exponent);
}

// The exponents, usually one, are widened to E first: their type is independent of that of the
// bases.
template <typename E>
Result<void> power_by(const Call& call, DataType type) {
    std::vector<E> exponents = to_numbers<E>(call.inputs[1]);
    const Array inputs[] = {
        call.inputs[0],
        {type, call.inputs[1].shape, reinterpret_cast<std::byte*>(exponents.data())}};
    return for_type<Numbers>(call, call.inputs[0].type, [&]<typename T>(T) {
        constexpr auto apply = [](auto base, E exponent) { return raised(base, exponent); };
        run_row(binary_row<RowElement<T>, E, apply>, inputs, call.outputs[0]);
    });
}

Result<void> power(const Call& call) {
    const DataType type = call.inputs[1].type;
    if (graph::is_float(type) || graph::is_float(call.inputs[0].type))
        return power_by<double>(call, DataType::float64);
    if (type == DataType::uint64) return power_by<uint64_t>(call, type);
    return power_by<int64_t>(call, DataType::int64);
}

// One output element from one element: a table of formulas.

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

// One output element from one element of each of two or more inputs, which broadcast.

// ONNX leaves integer division by zero open: ours: 0. The least integer by -1 wraps.
template <typename T>
T quotient(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        if (b == 0) return 0;
        if constexpr (std::is_signed_v<T>)
            if (b == -1) return difference(T{0}, a);
        return static_cast<T>(a / b);
    } else {
        return a / b;
    }
}

// The sign of the dividend, as in C; 0 for an integer by 0.
template <typename T>
T remainder_like_c(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
        return std::fmod(a, b);
    } else {
        if (b == 0) return 0;
        if constexpr (std::is_signed_v<T>)
            if (b == -1) return 0;
        return static_cast<T>(a % b);
    }
}
// The sign of the divisor.
template <typename T>
T modulo(T a, T b) {
    const T rest = remainder_like_c(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
}

Result<void> mod(const Call& call) {
    return call.node.get("fmod", int64_t{0}) != 0
               ? binary<Numbers, [](auto a, auto b) { return remainder_like_c(a, b); }>(call)
               : binary<Numbers, [](auto a, auto b) { return modulo(a, b); }>(call);
}

template <typename T>
T shifted_left(T x, T by) {
    return by < static_cast<T>(8 * sizeof(T)) ? static_cast<T>(Wrapping<T>{x} << by) : T{0};
}
template <typename T>
T shifted_right(T x, T by) {
    return by < static_cast<T>(8 * sizeof(T)) ? static_cast<T>(Wrapping<T>{x} >> by) : T{0};
}

Result<void> bit_shift(const Call& call) {
    return call.node.get("direction", "LEFT") == "LEFT"
               ? binary<Unsigned, [](auto x, auto by) { return shifted_left(x, by); }>(call)
               : binary<Unsigned, [](auto x, auto by) { return shifted_right(x, by); }>(call);
}

// From the left over any number of inputs.
template <typename List, auto apply>
Result<void> variadic(const Call& call) {
    const Row row = find_binary_row<List, apply>(call.outputs[0].type);
    for (const Array& x : call.inputs)
        if (!row || x.type != call.outputs[0].type) return no_type(call, x.type);
    if (call.inputs.size() == 2)
        run_row(row, call.inputs, call.outputs[0]);
    else
        run_row_over_all(row, nullptr, call.inputs, call.outputs[0]);
    return {};
}

Result<void> mean(const Call& call) {
    const DataType type = call.outputs[0].type;
    const Row add = find_binary_row<Floats, [](auto a, auto b) { return a + b; }>(type);
    const Row divide = find_binary_row<Floats, [](auto a, auto b) { return a / b; }>(type);
    for (const Array& x : call.inputs)
        if (!add || x.type != type) return no_type(call, x.type);
    run_row_over_all(add, divide, call.inputs, call.outputs[0]);
    return {};
}

// Elements that a row gets at once: their buffers stay in the nearest cache.
constexpr int64_t chunk = 512;
struct alignas(8) Buffer {
    std::byte bytes[chunk * 8];
};

bool is_half(DataType type) {
    return type == DataType::bf16 || type == DataType::fp16;
}
DataType type_in_row(DataType type) {
    return is_half(type) ? DataType::float32 : type;
}
int64_t row_size(DataType type) {
    return static_cast<int64_t>(size_bytes(type_in_row(type)));
}

void widen(DataType type, const std::byte* from, float* to, int64_t n) {
    const auto loop = [&](auto* half) {
        for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(half[i]);
    };
    if (type == DataType::bf16)
        loop(reinterpret_cast<const Bf16*>(from));
    else
        loop(reinterpret_cast<const _Float16*>(from));
}
void narrow(DataType type, const float* from, std::byte* to, int64_t n) {
    const auto loop = [&]<typename T>(T* half) {
        for (int64_t i = 0; i < n; ++i) half[i] = static_cast<T>(from[i]);
    };
    if (type == DataType::bf16)
        loop(reinterpret_cast<Bf16*>(to));
    else
        loop(reinterpret_cast<_Float16*>(to));
}

// n copies of the first element, by doubling.
void repeat(std::byte* bytes, size_t size, int64_t n) {
    const size_t all = size * static_cast<size_t>(n);
    for (size_t done = size; done < all; done += std::min(done, all - done))
        std::memcpy(bytes + done, bytes, std::min(done, all - done));
}

// One input as rows want it: n elements at `offset`, or one of them n times, of the type in rows.
class Operand {
public:
    Operand(const Array& array, bool advances) : array_(array), advances_(advances) {}
    // The elements of a run, the first chunk of which has n.
    void begin(int64_t offset, int64_t n) {
        data_ = array_.data + offset * static_cast<int64_t>(size_bytes(array_.type));
        if (advances_) return;
        const auto size = static_cast<size_t>(row_size(array_.type));
        if (is_half(array_.type))
            widen(array_.type, data_, reinterpret_cast<float*>(buffer_.bytes), 1);
        else
            std::memcpy(buffer_.bytes, data_, size);
        repeat(buffer_.bytes, size, n);
    }
    const std::byte* next(int64_t n) {
        if (!advances_) return buffer_.bytes;
        const std::byte* data = data_;
        data_ += n * static_cast<int64_t>(size_bytes(array_.type));
        if (!is_half(array_.type)) return data;
        widen(array_.type, data, reinterpret_cast<float*>(buffer_.bytes), n);
        return buffer_.bytes;
    }

private:
    const Array& array_;
    const bool advances_;
    const std::byte* data_ = nullptr;
    Buffer buffer_;
};

// f(at, n, x) for each chunk: n elements of every operand in x, to become those at `at`.
template <size_t N, typename F>
void for_each_chunk(const Runs<N>& runs, std::array<Operand, N>& operands, F&& f) {
    runs.for_each([&](int64_t start, const std::array<int64_t, N>& offsets) {
        for (size_t i = 0; i < N; ++i)
            operands[i].begin(offsets[i], std::min(chunk, runs.length()));
        for (int64_t done = 0; done < runs.length(); done += chunk) {
            const int64_t n = std::min(chunk, runs.length() - done);
            std::array<const std::byte*, N> x;
            for (size_t i = 0; i < N; ++i) x[i] = operands[i].next(n);
            f(start + done, n, x);
        }
    });
}

template <size_t N>
void run_row_over(const Runs<N>& runs, std::array<Operand, N>& operands, Row row, const Array& y,
                  const Parameters& p) {
    const auto size = static_cast<int64_t>(size_bytes(y.type));
    Buffer wide;
    for_each_chunk(runs, operands, [&](int64_t at, int64_t n, const auto& x) {
        std::byte* to = y.data + at * size;
        row(x.data(), is_half(y.type) ? wide.bytes : to, n, p);
        if (is_half(y.type)) narrow(y.type, reinterpret_cast<float*>(wide.bytes), to, n);
    });
}

void run_row(Row row, std::span<const Array> inputs, const Array& y, const Parameters& p) {
    if (inputs.size() == 1) {
        const Runs<1> runs(y.shape, {inputs[0].shape});
        std::array operands = {Operand(inputs[0], runs.step(0) != 0)};
        run_row_over(runs, operands, row, y, p);
    } else {
        const Runs<2> runs(y.shape, {inputs[0].shape, inputs[1].shape});
        std::array operands = {Operand(inputs[0], runs.step(0) != 0),
                               Operand(inputs[1], runs.step(1) != 0)};
        run_row_over(runs, operands, row, y, p);
    }
}

void run_row_over_all(Row row, Row divide, std::span<const Array> inputs, const Array& y) {
    const int64_t size = row_size(y.type), elements = y.elements();
    std::vector<std::byte> results(static_cast<size_t>(elements * size));
    for (const Array& input : inputs) {
        const Runs<1> runs(y.shape, {input.shape});
        std::array operands = {Operand(input, runs.step(0) != 0)};
        for_each_chunk(runs, operands, [&](int64_t at, int64_t n, const auto& x) {
            std::byte* to = results.data() + at * size;
            const std::byte* both[] = {to, x[0]};
            if (&input == inputs.data())
                std::memcpy(to, x[0], static_cast<size_t>(n * size));
            else
                row(both, to, n, {});
        });
    }
    if (divide) {
        const Array all{type_in_row(y.type), y.shape, results.data()};
        float single = static_cast<float>(inputs.size());
        double twice = static_cast<double>(inputs.size());
        std::byte* count = y.type == DataType::float64 ? reinterpret_cast<std::byte*>(&twice)
                                                       : reinterpret_cast<std::byte*>(&single);
        const Array both[] = {all, {all.type, {}, count}};
        return run_row(divide, both, y);
    }
    if (is_half(y.type))
        narrow(y.type, reinterpret_cast<float*>(results.data()), y.data, elements);
    else
        std::memcpy(y.data, results.data(), results.size());
}

using graph::OpInfo;
using graph::Trait;
using graph::Traits;

constexpr OpInfo of_one(std::string_view kind, std::string_view attributes, Kernel kernel,
                        Traits traits = {}) {
    return {kind,
            1,
            1,
            1,
            1,
            attributes,
            graph::infer_same,
            graph::count_output,
            kernel,
            Trait::part | traits};
}
constexpr OpInfo of_two(std::string_view kind, std::string_view attributes, Kernel kernel,
                        Traits traits = {}) {
    return {kind,
            2,
            2,
            1,
            1,
            attributes,
            graph::infer_broadcast,
            graph::count_output,
            kernel,
            Trait::part | traits};
}
constexpr OpInfo of_any(std::string_view kind, Kernel kernel, Traits traits = {}) {
    return {kind,
            1,
            -1,
            1,
            1,
            "",
            graph::infer_broadcast,
            graph::count_output,
            kernel,
            Trait::part | Trait::neutral | traits};
}
constexpr OpInfo compare(std::string_view kind, Kernel kernel) {
    return {
        kind, 2, 2, 1, 1, "", graph::infer_compare, graph::count_output, kernel, Trait::comparison};
}

constexpr OpInfo rows[] = {
    {"Identity", 1, 1, 1, 1, "", graph::infer_same, graph::count_none, identity,
     Trait::part | Trait::reshapes | Trait::neutral | Trait::carries},
    {"Clip", 1, 3, 1, 1, "min:f@1 max:f@2", graph::infer_clip, graph::count_output, clip,
     Trait::part | Trait::activation | Trait::cuts_off | Trait::carries | Trait::keeps_shape},
    {"Cast", 1, 1, 1, 1, "to:s*", graph::infer_cast, graph::count_output, cast, Trait::neutral},
    {"Where", 3, 3, 1, 1, "", graph::infer_where, graph::count_output, where, Trait::carries},
    {"Pow", 2, 2, 1, 1, "", graph::infer_shift, graph::count_output, power},
    {"BitShift", 2, 2, 1, 1, "direction:s*|LEFT|RIGHT", graph::infer_shift, graph::count_output,
     bit_shift},
    {"PRelu", 2, 2, 1, 1, "", graph::infer_prelu, graph::count_output,
     binary<Numbers, [](auto x, auto slope) { return x < 0 ? product(x, slope) : x; }>},
    {"IsInf", 1, 1, 1, 1, "detect_negative:i=1 detect_positive:i=1", graph::infer_predicate,
     graph::count_output,
     with_parameters<Floats, [](auto x, const Parameters& p) { return is_inf(x, p); }>},
    {"IsNaN", 1, 1, 1, 1, "", graph::infer_predicate, graph::count_output,
     unary<Floats, [](auto x) { return std::isnan(x); }>},

    of_one("Abs", "", unary<Numbers, [](auto x) { return absolute(x); }>, Trait::never_negative),
    of_one("Acos", "", real<[](double x) { return std::acos(x); }>),
    of_one("Acosh", "", real<[](double x) { return std::acosh(x); }>),
    of_one("Asin", "", real<[](double x) { return std::asin(x); }>),
    of_one("Asinh", "", real<[](double x) { return std::asinh(x); }>),
    of_one("Atan", "", real<[](double x) { return std::atan(x); }>),
    of_one("Atanh", "", real<[](double x) { return std::atanh(x); }>),
    of_one("BitwiseNot", "", unary<Integers, [](auto x) { return static_cast<decltype(x)>(~x); }>),
    of_one("Ceil", "", unary<Floats, [](auto x) { return std::ceil(x); }>, Trait::exact_0),
    of_one("Celu", "alpha:f=1", real<[](double x, const Parameters& p) {
               return x < 0 ? p.alpha * std::expm1(x / p.alpha) : x;
           }>),
    of_one("Cos", "", real<[](double x) { return std::cos(x); }>, Trait::exact_0),
    of_one("Cosh", "", real<[](double x) { return std::cosh(x); }>),
    of_one("Elu", "alpha:f=1",
           real<[](double x, const Parameters& p) { return x < 0 ? p.alpha * std::expm1(x) : x; }>,
           Trait::activation),
    of_one("Erf", "", real<[](double x) { return std::erf(x); }, Numbers>),
    of_one("Exp", "", real<[](double x) { return std::exp(x); }>,
           Trait::never_negative | Trait::carries),
    of_one("Floor", "", unary<Floats, [](auto x) { return std::floor(x); }>, Trait::exact_0),
    of_one("Gelu", "approximate:s=none|tanh", any_gelu, Trait::activation),
    of_one("HardSigmoid", "alpha:f=0.2 beta:f=0.5", real<[](double x, const Parameters& p) {
               return std::clamp(p.alpha * x + p.beta, 0.0, 1.0);
           }>,
           Trait::activation | Trait::never_negative),
    of_one("HardSwish", "", real<[](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }>,
           Trait::activation),
    of_one("LeakyRelu", "alpha:f=0.01",
           real<[](double x, const Parameters& p) { return x < 0 ? x * p.alpha : x; }>,
           Trait::activation),
    of_one("Log", "", real<[](double x) { return std::log(x); }>),
    of_one("Mish", "", real<[](double x) { return x * std::tanh(softplus(x)); }>,
           Trait::activation),
    of_one("Neg", "", unary<SignedNumbers, [](auto x) { return negated(x); }>, Trait::carries),
    of_one("Not", "", unary<Bools, [](bool x) { return !x; }>),
    of_one("QuickGelu", "alpha:f=1.702",
           real<[](double x, const Parameters& p) { return x * sigmoid(p.alpha * x); }>),
    of_one("Reciprocal", "", unary<Floats, [](auto x) { return 1 / x; }>),
    of_one("Relu", "", unary<SignedNumbers, [](auto x) { return x < 0 ? decltype(x){} : x; }>,
           Trait::activation | Trait::cuts_off | Trait::never_negative),
    // Half to even, the rounding mode that every program starts in.
    of_one("Round", "", unary<Floats, [](auto x) { return std::nearbyint(x); }>, Trait::exact_0),
    of_one("Selu", "alpha:f=1.67326319217681884765625 gamma:f=1.05070102214813232421875",
           real<[](double x, const Parameters& p) {
               return p.gamma * (x < 0 ? p.alpha * std::expm1(x) : x);
           }>),
    of_one("Shrink", "bias:f=0 lambd:f=0.5", real<shrink, Numbers>),
    of_one("SiLU", "", real<[](double x) { return x * sigmoid(x); }>,
           Trait::activation | Trait::internal),
    of_one("Sigmoid", "", real<sigmoid>, Trait::activation | Trait::never_negative),
    of_one("Sign", "", unary<Numbers, [](auto x) { return sign(x); }>),
    of_one("Sin", "", real<[](double x) { return std::sin(x); }>, Trait::exact_0),
    of_one("Sinh", "", real<[](double x) { return std::sinh(x); }>),
    of_one("Softplus", "", real<softplus>, Trait::never_negative),
    of_one("Softsign", "", real<[](double x) { return x / (1 + std::fabs(x)); }>),
    of_one("Sqrt", "", unary<Floats, [](auto x) { return std::sqrt(x); }>),
    of_one("Tan", "", real<[](double x) { return std::tan(x); }>),
    of_one("Tanh", "", real<[](double x) { return std::tanh(x); }>, Trait::activation),
    of_one("ThresholdedRelu", "alpha:f=1",
           real<[](double x, const Parameters& p) { return (x > p.alpha) ? x : 0.0; }>),

    of_two("Add", "", binary<Numbers, [](auto a, auto b) { return sum(a, b); }>,
           Trait::linear | Trait::carries),
    of_two("And", "", binary<Bools, [](bool a, bool b) { return a && b; }>),
    of_two("BitwiseAnd", "",
           binary<Integers, [](auto a, auto b) { return static_cast<decltype(a)>(a & b); }>),
    of_two("BitwiseOr", "",
           binary<Integers, [](auto a, auto b) { return static_cast<decltype(a)>(a | b); }>),
    of_two("BitwiseXor", "",
           binary<Integers, [](auto a, auto b) { return static_cast<decltype(a)>(a ^ b); }>),
    of_two("Div", "", binary<Numbers, [](auto a, auto b) { return quotient(a, b); }>,
           Trait::carries),
    of_two("Mod", "fmod:i=0", mod, Trait::exact_0 | Trait::exact_1),
    of_two("Mul", "", binary<Numbers, [](auto a, auto b) { return product(a, b); }>,
           Trait::carries),
    of_two("Or", "", binary<Bools, [](bool a, bool b) { return a || b; }>),
    of_two("Sub", "", binary<Numbers, [](auto a, auto b) { return difference(a, b); }>,
           Trait::linear | Trait::carries),
    of_two("Xor", "", binary<Bools, [](bool a, bool b) { return a != b; }>),
    of_any("Max", variadic<Numbers, [](auto a, auto b) { return larger(a, b); }>, Trait::carries),
    of_any("Mean", mean),
    of_any("Min", variadic<Numbers, [](auto a, auto b) { return smaller(a, b); }>, Trait::carries),
    of_any("Sum", variadic<Floats, [](auto a, auto b) { return a + b; }>),
    compare("Equal", binary<AllTypes, [](auto a, auto b) { return a == b; }>),
    compare("Greater", binary<Numbers, [](auto a, auto b) { return (a > b); }>),
    compare("GreaterOrEqual", binary<Numbers, [](auto a, auto b) { return a >= b; }>),
    compare("Less", binary<Numbers, [](auto a, auto b) { return a < b; }>),
    compare("LessOrEqual", binary<Numbers, [](auto a, auto b) { return a <= b; }>),
};

}  // namespace
}  // namespace vartml::cpu

namespace vartml::graph {

std::span<const OpInfo> elementwise_ops() {
    return cpu::rows;
}

}  // namespace vartml::graph
