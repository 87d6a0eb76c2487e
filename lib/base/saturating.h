// SPDX-License-Identifier: Apache-2.0
// Unsigned arithmetic that stops at the largest number instead of wrapping: a count that does not
// fit stays recognisable.
#pragma once
#include <cstdint>
#include <limits>

namespace vartml {

// Stands for "more than 64 bits hold".
inline constexpr uint64_t beyond_count = std::numeric_limits<uint64_t>::max();

inline uint64_t saturating_sum(uint64_t a, uint64_t b) {
    return a > beyond_count - b ? beyond_count : a + b;
}

inline uint64_t saturating_product(uint64_t a, uint64_t b) {
    return a != 0 && b > beyond_count / a ? beyond_count : a * b;
}

}  // namespace vartml
