// SPDX-License-Identifier: Apache-2.0
// What the element-wise kernels share. One formula is one short loop per type, a row; all that is
// around it (broadcasting, the halves, several inputs) is no template.
#pragma once
#include "lib/cpu/typed.h"

namespace vartml::cpu {

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

}  // namespace vartml::cpu
