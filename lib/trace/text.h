// SPDX-License-Identifier: Apache-2.0
// printf into a string, for texts whose form is given as printf formats.
#pragma once
#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

namespace vartml::profiling {

[[gnu::format(printf, 1, 2)]] std::string format_text(const char* format, ...);

// Times of a trace.

// Microseconds with exactly three decimals.
template <std::integral T>
void append_us(std::string& out, T ns) {
    const auto bits = static_cast<uint64_t>(ns);
    const bool is_negative = std::is_signed_v<T> && ns < T{0};
    const uint64_t size = is_negative ? 0 - bits : bits;
    if (is_negative) out += '-';
    char digits[24];
    char* end = std::to_chars(digits, digits + sizeof digits, size / 1000).ptr;
    *end++ = '.';
    for (const uint64_t digit : {size / 100 % 10, size / 10 % 10, size % 10})
        *end++ = static_cast<char>('0' + digit);
    out.append(digits, end);
}

}  // namespace vartml::profiling
