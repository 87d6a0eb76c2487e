// SPDX-License-Identifier: Apache-2.0
// Constants of any element type as numbers, and back.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include <vartml/tensor.h>

#include "lib/graph/graph.h"

namespace vartml::graph {

bool is_integral(DataType type);  // bool included
bool is_float(DataType type);

// All elements of a constant; T is double, float or int64_t. Empty where the value is no constant
// or its type is unknown. Floats become integers by dropping the fraction.
template <typename T>
std::vector<T> read_numbers(const Value& value);

// A constant of the type given; rounds to nearest for narrower floats, drops the fraction and
// clamps for integers made from floats, wraps integers made from integers.
template <typename T>
Constant write_numbers(DataType type, std::span<const T> numbers);

// The only element of a constant, or of a constant whose elements are all equal.
std::optional<double> uniform_number(const Value& value);

// Element types as C++ types, and conversion between them; private to lib/graph.

struct Bf16 {
    uint16_t bits = 0;
    Bf16() = default;
    explicit Bf16(float value) {
        const auto wide = std::bit_cast<uint32_t>(value);
        // Nearest, ties to even; a NaN keeps its high bits and stays quiet.
        const uint32_t rounded = wide + 0x7FFF + ((wide >> 16) & 1);
        bits = std::isnan(value) ? static_cast<uint16_t>((wide >> 16) | 0x40)
                                 : static_cast<uint16_t>(rounded >> 16);
    }
    explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

// A bool as it lies in memory: a foreign file may hold any byte.
struct Bool {
    uint8_t byte = 0;
};

// Calls f with a value of the element type; false for unknown.
template <typename F>
bool with_type(DataType type, F&& f) {
    switch (type) {
        case DataType::boolean:
            f(Bool());
            return true;
        case DataType::int8:
            f(int8_t());
            return true;
        case DataType::uint8:
            f(uint8_t());
            return true;
        case DataType::int16:
            f(int16_t());
            return true;
        case DataType::uint16:
            f(uint16_t());
            return true;
        case DataType::bf16:
            f(Bf16());
            return true;
        case DataType::fp16:
            f(_Float16());
            return true;
        case DataType::int32:
            f(int32_t());
            return true;
        case DataType::uint32:
            f(uint32_t());
            return true;
        case DataType::float32:
            f(float());
            return true;
        case DataType::int64:
            f(int64_t());
            return true;
        case DataType::uint64:
            f(uint64_t());
            return true;
        case DataType::float64:
            f(double());
            return true;
        case DataType::unknown:
            break;
    }
    return false;
}

template <typename To, typename From>
To to_integer(From from) {
    if (std::isnan(from)) return 0;
    // The largest integer may round up as a float; at or above it clamps.
    if (from >= static_cast<From>(std::numeric_limits<To>::max()))
        return std::numeric_limits<To>::max();
    if (from <= static_cast<From>(std::numeric_limits<To>::min()))
        return std::numeric_limits<To>::min();
    return static_cast<To>(from);
}

// Rounds to nearest for narrower floats, drops the fraction and clamps for integers made from
// floats, wraps integers made from integers.
template <typename To, typename From>
To convert(From from) {
    if constexpr (std::is_same_v<From, Bool>) {
        return static_cast<To>(from.byte != 0);
    } else if constexpr (std::is_same_v<From, Bf16>) {
        return convert<To>(static_cast<float>(from));
    } else if constexpr (std::is_same_v<From, _Float16>) {
        return convert<To>(static_cast<float>(from));
    } else if constexpr (std::is_same_v<To, Bool>) {
        return Bool{static_cast<uint8_t>(from != 0)};
    } else if constexpr (std::is_same_v<To, Bf16>) {
        return Bf16(static_cast<float>(from));
    } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
        return to_integer<To>(from);
    } else {
        return static_cast<To>(from);
    }
}

}  // namespace vartml::graph
