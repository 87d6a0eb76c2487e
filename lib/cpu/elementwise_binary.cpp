// SPDX-License-Identifier: Apache-2.0
// One output element from one element of each of two or more inputs, which broadcast.
#include <cmath>

#include "lib/cpu/arithmetic.h"
#include "lib/cpu/elementwise.h"

namespace vartml::cpu {

namespace {

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

constexpr KernelRow kernels[] = {
    {"Add", binary<Numbers, [](auto a, auto b) { return sum(a, b); }>},
    {"And", binary<Bools, [](bool a, bool b) { return a && b; }>},
    {"BitShift", bit_shift},
    {"BitwiseAnd",
     binary<Integers, [](auto a, auto b) { return static_cast<decltype(a)>(a & b); }>},
    {"BitwiseOr", binary<Integers, [](auto a, auto b) { return static_cast<decltype(a)>(a | b); }>},
    {"BitwiseXor",
     binary<Integers, [](auto a, auto b) { return static_cast<decltype(a)>(a ^ b); }>},
    {"Div", binary<Numbers, [](auto a, auto b) { return quotient(a, b); }>},
    {"Equal", binary<AllTypes, [](auto a, auto b) { return a == b; }>},
    {"Greater", binary<Numbers, [](auto a, auto b) { return (a > b); }>},
    {"GreaterOrEqual", binary<Numbers, [](auto a, auto b) { return a >= b; }>},
    {"Less", binary<Numbers, [](auto a, auto b) { return a < b; }>},
    {"LessOrEqual", binary<Numbers, [](auto a, auto b) { return a <= b; }>},
    {"Max", variadic<Numbers, [](auto a, auto b) { return larger(a, b); }>},
    {"Mean", mean},
    {"Min", variadic<Numbers, [](auto a, auto b) { return smaller(a, b); }>},
    {"Mod", mod},
    {"Mul", binary<Numbers, [](auto a, auto b) { return product(a, b); }>},
    {"Or", binary<Bools, [](bool a, bool b) { return a || b; }>},
    {"PRelu", binary<Numbers, [](auto x, auto slope) { return x < 0 ? product(x, slope) : x; }>},
    {"Sub", binary<Numbers, [](auto a, auto b) { return difference(a, b); }>},
    {"Sum", variadic<Floats, [](auto a, auto b) { return a + b; }>},
    {"Xor", binary<Bools, [](bool a, bool b) { return a != b; }>},
};

}  // namespace

std::span<const KernelRow> binary_kernels() {
    return kernels;
}

}  // namespace vartml::cpu
