// SPDX-License-Identifier: Apache-2.0
// Moving elements of any type, and elements as numbers; what the kernels that move and pick share.
#pragma once
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "lib/graph/kernel.h"
#include "lib/graph/numbers.h"
#include "lib/graph/walk.h"

namespace vartml::cpu {

// dst[i] = src[i] for all indices of the shape. Strides are in elements, of any sign; 0 repeats.
void copy_elements(const Shape& shape, size_t element_bytes, const std::byte* src,
                   const Strides& src_strides, std::byte* dst, const Strides& dst_strides);

// Per axis of an output: the offset in elements that each index adds to the source.
using Offsets = std::vector<std::vector<int64_t>>;

// Offsets that leave a tensor as it is.
Offsets all_offsets(const Shape& shape);
// The dense output whose element is the source element at the sum of the offsets. One list per
// axis, at most eight.
void gather_axes(const Offsets& offsets, const Shape& src_shape, size_t element_bytes,
                 const std::byte* src, std::byte* dst);

// The elements of an array of any type. Floats become integers by dropping the fraction.
template <typename T>
std::vector<T> read_numbers(const Array& array) {
    std::vector<T> numbers;
    graph::with_type(array.type, [&]<typename From>(From) {
        const auto elements = array.span<From>();
        numbers.reserve(elements.size());
        for (const From element : elements) numbers.push_back(graph::convert<T>(element));
    });
    return numbers;
}

// Input i, i32 or i64, as indices into an axis of that size; negative ones are counted from the
// end. Errors: bad_model for an index outside.
Result<std::vector<int64_t>> read_indices(const Call& call, size_t i, int64_t size);
// The first element of input i, or the fallback where the input is absent or empty.
int64_t read_integer(const Call& call, size_t i, int64_t fallback);

// Calls f with an unsigned integer as wide as an element.
template <typename F>
void with_word(size_t element_bytes, F&& f) {
    switch (element_bytes) {
        case 1:
            return f(uint8_t());
        case 2:
            return f(uint16_t());
        case 4:
            return f(uint32_t());
        default:
            return f(uint64_t());
    }
}

template <typename T>
inline constexpr bool is_half_v = std::is_same_v<T, graph::Bf16> || std::is_same_v<T, _Float16>;

// What to compute with: float for the short floats, 0 and 1 for bool.
template <typename T>
auto number(T element) {
    if constexpr (std::is_same_v<T, graph::Bool>) {
        return static_cast<uint8_t>(element.byte != 0);
    } else if constexpr (is_half_v<T>) {
        return static_cast<float>(element);
    } else {
        return element;
    }
}
template <typename T>
using Number = decltype(number(T()));

template <typename N>
bool is_nan(N value) {
    if constexpr (std::is_floating_point_v<N>) {
        return std::isnan(value);
    } else {
        return false;
    }
}

// An order of all numbers: NaN is behind all others, and one NaN like the other.
template <typename N>
bool is_less(N a, N b) {
    return a < b || (!is_nan(a) && is_nan(b));
}

}  // namespace vartml::cpu
