// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/python_literal.h"

#include <charconv>
#include <map>

namespace vartml::compiler {
namespace {

constexpr size_t max_entries = 65536;

void append_utf8(std::string& text, uint32_t code) {
    if (code < 0x80) {
        text += static_cast<char>(code);
    } else if (code < 0x800) {
        text += static_cast<char>(0xc0 | code >> 6);
        text += static_cast<char>(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        text += static_cast<char>(0xe0 | code >> 12);
        text += static_cast<char>(0x80 | (code >> 6 & 0x3f));
        text += static_cast<char>(0x80 | (code & 0x3f));
    } else {
        text += static_cast<char>(0xf0 | code >> 18);
        text += static_cast<char>(0x80 | (code >> 12 & 0x3f));
        text += static_cast<char>(0x80 | (code >> 6 & 0x3f));
        text += static_cast<char>(0x80 | (code & 0x3f));
    }
}

class Scanner {
public:
    explicit Scanner(std::string_view text) : rest_(text) {}

    bool take(char c) {
        skip_blanks();
        if (!rest_.starts_with(c)) return false;
        rest_.remove_prefix(1);
        return true;
    }
    bool at_end() {
        skip_blanks();
        return rest_.empty();
    }

    std::optional<int64_t> integer() {
        skip_blanks();
        int64_t value = 0;
        const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
        if (error != std::errc()) return std::nullopt;
        rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
        return value;
    }

    std::optional<std::string> string() {
        skip_blanks();
        if (rest_.starts_with('u')) rest_.remove_prefix(1);  // Python 2 wrote u'…'
        if (!rest_.starts_with('\'') && !rest_.starts_with('"')) return std::nullopt;
        const char quote = rest_[0];
        rest_.remove_prefix(1);
        std::string out;
        while (!rest_.empty() && rest_[0] != quote) {
            if (rest_[0] != '\\') {
                out += rest_[0];
                rest_.remove_prefix(1);
            } else if (!escape(out)) {
                return std::nullopt;
            }
        }
        if (rest_.empty()) return std::nullopt;
        rest_.remove_prefix(1);
        return out;
    }

private:
    void skip_blanks() {
        while (!rest_.empty() &&
               (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\n' || rest_[0] == '\r'))
            rest_.remove_prefix(1);
    }

    // A backslash and what follows it; an unknown escape stays as it is, as in Python.
    bool escape(std::string& out) {
        rest_.remove_prefix(1);
        if (rest_.empty()) return false;
        const char c = rest_[0];
        rest_.remove_prefix(1);
        switch (c) {
            case 'n':
                out += '\n';
                return true;
            case 't':
                out += '\t';
                return true;
            case 'r':
                out += '\r';
                return true;
            case '\\':
            case '\'':
            case '"':
                out += c;
                return true;
            case 'x':
                return code_point(2, out);
            case 'u':
                return code_point(4, out);
            case 'U':
                return code_point(8, out);
            default:
                (out += '\\') += c;
                return true;
        }
    }

    bool code_point(size_t digits, std::string& out) {
        uint32_t code = 0;
        if (rest_.size() < digits) return false;
        const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + digits, code, 16);
        if (error != std::errc() || end != rest_.data() + digits || code > 0x10ffff ||
            (code >= 0xd800 && code < 0xe000))
            return false;
        rest_.remove_prefix(digits);
        append_utf8(out, code);
        return true;
    }

    std::string_view rest_;
};

std::optional<std::vector<std::string>> parse_list(Scanner& scan) {
    std::vector<std::string> names;
    while (!scan.take(']')) {
        auto name = scan.string();
        if (!name || names.size() == max_entries) return std::nullopt;
        names.push_back(std::move(*name));
        if (scan.take(',')) continue;
        if (!scan.take(']')) return std::nullopt;
        break;
    }
    return names;
}

std::optional<std::vector<std::string>> parse_dict(Scanner& scan) {
    std::map<int64_t, std::string> entries;
    while (!scan.take('}')) {
        const auto key = scan.integer();
        if (!key || !scan.take(':') || entries.size() == max_entries) return std::nullopt;
        auto name = scan.string();
        if (!name || !entries.emplace(*key, std::move(*name)).second) return std::nullopt;
        if (scan.take(',')) continue;
        if (!scan.take('}')) return std::nullopt;
        break;
    }
    std::vector<std::string> names;
    for (auto& [index, name] : entries) {
        if (index != static_cast<int64_t>(names.size())) return std::nullopt;
        names.push_back(std::move(name));
    }
    return names;
}

}  // namespace

std::optional<std::vector<std::string>> parse_python_names(std::string_view text) {
    Scanner scan(text);
    std::optional<std::vector<std::string>> names;
    if (scan.take('{')) {
        names = parse_dict(scan);
    } else if (scan.take('[')) {
        names = parse_list(scan);
    }
    return names && scan.at_end() ? names : std::nullopt;
}

std::optional<std::vector<int64_t>> parse_python_ints(std::string_view text) {
    Scanner scan(text);
    const char close = scan.take('[') ? ']' : scan.take('(') ? ')' : '\0';
    std::vector<int64_t> numbers;
    while (close == '\0' || !scan.take(close)) {
        const auto number = scan.integer();
        if (!number || numbers.size() == max_entries) return std::nullopt;
        numbers.push_back(*number);
        if (close == '\0') break;
        if (scan.take(',')) continue;
        if (!scan.take(close)) return std::nullopt;
        break;
    }
    return scan.at_end() ? std::optional(numbers) : std::nullopt;
}

}  // namespace vartml::compiler
