// SPDX-License-Identifier: Apache-2.0
#include "lib/base/json.h"

#include <algorithm>

#include "lib/base/text.h"

namespace vartml {
namespace {

void append_escaped(std::string& out, unsigned char c) {
    constexpr char digits[] = "0123456789abcdef";
    switch (c) {
        case '"':
        case '\\':
            out += '\\';
            out += static_cast<char>(c);
            return;
        case '\n':
            out += "\\n";
            return;
        case '\t':
            out += "\\t";
            return;
        default:
            out += "\\u00";
            out += digits[c >> 4];
            out += digits[c & 15];
    }
}

bool is_literal(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\';
}

// Length of the longest part at the front that is one code point; 1 where it is malformed.
size_t code_point(std::string_view text, bool& valid) {
    for (size_t length = 1; length <= 4 && length <= text.size(); ++length) {
        if (is_utf8(text.substr(0, length))) {
            valid = true;
            return length;
        }
    }
    valid = false;
    return 1;
}

}  // namespace

void append_quoted(std::string& out, std::string_view text) {
    out += '"';
    while (!text.empty()) {
        const auto stop = std::ranges::find_if_not(text, is_literal);
        out.append(text.begin(), stop);
        text.remove_prefix(static_cast<size_t>(stop - text.begin()));
        if (text.empty()) break;
        size_t length = 1;
        const auto c = static_cast<unsigned char>(text.front());
        if (c < 0x80) {
            append_escaped(out, c);
        } else {
            bool valid = false;
            length = code_point(text, valid);
            out += valid ? text.substr(0, length) : std::string_view("\xEF\xBF\xBD");
        }
        text.remove_prefix(length);
    }
    out += '"';
}

std::string text_of_bytes(const std::string& bytes) {
    std::string text;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x80) text += static_cast<char>(0xc0 | byte >> 6);
        text += byte >= 0x80 ? static_cast<char>(0x80 | (byte & 0x3f)) : c;
    }
    return text;
}

}  // namespace vartml
