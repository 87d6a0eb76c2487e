// SPDX-License-Identifier: Apache-2.0
// Element types in kernels: groups of them, the type to compute in, and loops chosen by type.
#pragma once
#include <cmath>
#include <type_traits>
#include <vector>

#include "lib/graph/kernel.h"
#include "lib/graph/numbers.h"

namespace vartml::cpu {

using graph::Bf16;
using graph::Bool;

template <typename... Ts>
struct Types {};
template <typename A, typename B>
struct JoinTypes;
template <typename... As, typename... Bs>
struct JoinTypes<Types<As...>, Types<Bs...>> {
    using type = Types<As..., Bs...>;
};
template <typename A, typename B>
using Join = JoinTypes<A, B>::type;

using Bools = Types<Bool>;
using Floats = Types<Bf16, _Float16, float, double>;
using Signed = Types<int8_t, int16_t, int32_t, int64_t>;
using Unsigned = Types<uint8_t, uint16_t, uint32_t, uint64_t>;
using Integers = Join<Signed, Unsigned>;
using Numbers = Join<Integers, Floats>;
using AllTypes = Join<Bools, Numbers>;

template <typename T, typename List>
inline constexpr bool is_in = false;
template <typename T, typename... Ts>
inline constexpr bool is_in<T, Types<Ts...>> = (std::is_same_v<T, Ts> || ...);

// What an element is computed in: float for the halves, bool for Bool, else its own type.
template <typename T>
using Work = std::conditional_t<std::is_same_v<T, Bf16> || std::is_same_v<T, _Float16>, float,
                                std::conditional_t<std::is_same_v<T, Bool>, bool, T>>;
template <typename T>
Work<T> load(T element) {
    if constexpr (std::is_same_v<T, Bool>)
        return element.byte != 0;
    else
        return static_cast<Work<T>>(element);
}
template <typename T>
T store(Work<T> value) {
    if constexpr (std::is_same_v<T, Bool>)
        return Bool{static_cast<uint8_t>(value)};
    else
        return static_cast<T>(value);
}

// The unsigned type in which + - * of integers wrap; never narrower than int, to which C++
// promotes.
template <typename T>
using Wrapping =
    std::conditional_t<sizeof(T) < sizeof(unsigned), unsigned, std::make_unsigned_t<T>>;

// Calls f with a value of the element type if the list has it, else returns false.
template <typename List, typename F>
bool with_type_of(DataType type, F&& f) {
    bool known = false;
    graph::with_type(type, [&]<typename T>(T element) {
        if constexpr (is_in<T, List>) {
            known = true;
            f(element);
        }
    });
    return known;
}
// The same for a kernel.
template <typename List, typename F>
Result<void> for_type(const Call& call, DataType type, F&& f) {
    if (!with_type_of<List>(type, f)) return no_type(call, type);
    return {};
}

// The attribute `axis`. Canonical nodes count from the front; a damaged file must do no harm.
inline size_t axis_of(const Call& call, const Shape& shape) {
    const int64_t axis = call.node.get("axis", int64_t{0});
    return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis);
}

// All elements as numbers of type T (double, int64_t …).
template <typename T>
std::vector<T> to_numbers(const Array& array) {
    std::vector<T> numbers(static_cast<size_t>(array.elements()));
    graph::with_type(array.type, [&]<typename X>(X) {
        const X* x = array.as<X>();
        for (T& number : numbers) number = graph::convert<T>(*x++);
    });
    return numbers;
}

// The basic operations on numbers of any type that a kernel computes in.

// Integers wrap.
template <typename T>
T sum(T a, T b) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
    else
        return a + b;
}
template <typename T>
T difference(T a, T b) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
    else
        return a - b;
}
template <typename T>
T product(T a, T b) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
    else
        return a * b;
}

template <typename T>
T negated(T x) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(0 - static_cast<Wrapping<T>>(x));
    else
        return -x;
}
template <typename T>
T absolute(T x) {
    if constexpr (std::is_floating_point_v<T>)
        return std::fabs(x);
    else
        return x < 0 ? negated(x) : x;
}
// A NaN wins.
template <typename T>
T larger(T a, T b) {
    return a > b || a != a ? a : b;
}
template <typename T>
T smaller(T a, T b) {
    return a < b || a != a ? a : b;
}

}  // namespace vartml::cpu
