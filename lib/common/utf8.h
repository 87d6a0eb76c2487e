// SPDX-License-Identifier: Apache-2.0
// Checks text that comes from a file.
#pragma once
#include <string>
#include <string_view>

namespace vartml {

// Well-formed UTF-8 (RFC 3629): no overlong form, no surrogate, nothing above U+10FFFF.
bool is_utf8(std::string_view text);
// is_utf8 and no control character (C0, DEL, C1).
bool is_plain_text(std::string_view text);
// The text for a message: bytes that are no plain text as \xNN, cut after `max_bytes`.
std::string printable(std::string_view text, size_t max_bytes = 200);

}  // namespace vartml
