// SPDX-License-Identifier: Apache-2.0
// Text that comes from a file, and text for people.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace vartml {

// Well-formed UTF-8 (RFC 3629): no overlong form, no surrogate, nothing above U+10FFFF.
bool is_utf8(std::string_view text);
// is_utf8 and no control character (C0, DEL, C1).
bool is_plain_text(std::string_view text);
// The text for a message: bytes that are no plain text as \xNN, cut after `max_bytes`.
std::string printable(std::string_view text, size_t max_bytes = 200);

// "1,234,567".
std::string with_commas(uint64_t number);

// The known name that a misspelt one was meant to be; "" where none is within three changed, added
// or left-out letters.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known);

}  // namespace vartml
