// SPDX-License-Identifier: Apache-2.0
// JSON as text: the form of our files, and a writer to the end of a string without allocations of
// its own and without locale.
#pragma once
#include <charconv>
#include <cmath>
#include <concepts>
#include <string>
#include <string_view>

namespace vartml {

// A string in quotes; what is no UTF-8 becomes U+FFFD.
void append_quoted(std::string& out, std::string_view text);

// The name of a file in JSON for a program of ours: names are bytes, which need not be UTF-8 as
// JSON must, so each goes as the character of that number.
std::string text_of_bytes(const std::string& bytes);

// The form of every JSON file of ours: two-space indent, one final newline. `value` is a
// nlohmann::ordered_json.
template <typename Json>
std::string json_file_text(const Json& value) {
    return value.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

// Members and elements with their commas. The caller keeps brackets in pairs.
class JsonText {
public:
    explicit JsonText(std::string& out) : out_(out) {}

    void open(char bracket) {
        separate();
        out_ += bracket;
        first_ = true;
    }
    void close(char bracket) {
        out_ += bracket;
        first_ = false;
    }
    // `name` needs no escapes.
    void key(std::string_view name) {
        separate();
        out_ += '"';
        out_ += name;
        out_ += "\":";
        first_ = true;
    }
    void value(std::string_view text) {
        separate();
        append_quoted(out_, text);
    }
    void value(const char* text) { value(std::string_view(text)); }
    void null() {
        separate();
        out_ += "null";
    }
    template <typename Number>
        requires std::integral<Number> || std::floating_point<Number>
    void value(Number number) {
        if constexpr (std::floating_point<Number>) {
            if (!std::isfinite(number)) return null();
        }
        separate();
        char text[32];
        const auto [end, error] = std::to_chars(text, text + sizeof text, number);
        out_.append(text, end);
    }
    // With so many digits behind the point, as printf rounds.
    void fixed(double number, int digits) {
        if (!std::isfinite(number)) return null();
        separate();
        char text[400];
        const auto [end, error] =
            std::to_chars(text, text + sizeof text, number, std::chars_format::fixed, digits);
        out_.append(text, end);
    }
    template <typename Value>
    void member(std::string_view name, const Value& v) {
        key(name);
        value(v);
    }
    template <typename Values>
    void list(std::string_view name, const Values& values) {
        key(name);
        open('[');
        for (const auto& v : values) value(v);
        close(']');
    }

private:
    void separate() {
        if (!first_) out_ += ',';
        first_ = false;
    }
    std::string& out_;
    bool first_ = true;
};

}  // namespace vartml
