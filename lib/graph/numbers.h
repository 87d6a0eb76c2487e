// SPDX-License-Identifier: Apache-2.0
// Constants of any element type as numbers, and back.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

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

}  // namespace vartml::graph
