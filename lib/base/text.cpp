// SPDX-License-Identifier: Apache-2.0
#include "lib/base/text.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace vartml {
namespace {

// The code point at the front of `text` and its length in bytes; length 0 where it is malformed.
struct Decoded {
    uint32_t code = 0;
    size_t length = 0;
};

Decoded decode(std::string_view text) {
    const auto byte = [&](size_t i) -> uint32_t { return static_cast<unsigned char>(text[i]); };
    const uint32_t lead = byte(0);
    if (lead < 0x80) return {lead, 1};
    const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return {};
    uint32_t code = lead & (0x7fu >> length);
    for (size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return {};
        code = code << 6 | (byte(i) & 0x3f);
    }
    constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
    return {code, length};
}

bool is_control(uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

}  // namespace

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const Decoded d = decode(text);
        if (d.length == 0) return false;
        text.remove_prefix(d.length);
    }
    return true;
}

bool is_plain_text(std::string_view text) {
    while (!text.empty()) {
        const Decoded d = decode(text);
        if (d.length == 0 || is_control(d.code)) return false;
        text.remove_prefix(d.length);
    }
    return true;
}

std::string with_commas(uint64_t number) {
    std::string digits = std::to_string(number);
    for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
    return digits;
}

std::string printable(std::string_view text, size_t max_bytes) {
    std::string out;
    while (!text.empty()) {
        if (out.size() >= max_bytes) return out + "...";
        const Decoded d = decode(text);
        if (d.length != 0 && !is_control(d.code)) {
            out += text.substr(0, d.length);
            text.remove_prefix(d.length);
            continue;
        }
        constexpr char digits[] = "0123456789abcdef";
        const auto byte = static_cast<unsigned char>(text[0]);
        out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
        text.remove_prefix(1);
    }
    return out;
}

namespace {

// given: Levenshtein distance, one row at a time
size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row[b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known) {
    constexpr size_t near = 3;
    // A name much longer than ours cannot be near one, and would take long to compare.
    constexpr size_t longest = 64;
    if (name.size() > longest) return {};
    size_t best = near + 1;
    std::string_view nearest;
    for (const std::string_view candidate : known) {
        const size_t distance = edit_distance(name, candidate);
        if (distance < best) best = distance, nearest = candidate;
    }
    return nearest;
}

}  // namespace vartml
