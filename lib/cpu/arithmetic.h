// SPDX-License-Identifier: Apache-2.0
// The basic operations on numbers of any type that a kernel computes in.
#pragma once
#include <cmath>

#include "lib/cpu/typed.h"

namespace vartml::cpu {

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
