// SPDX-License-Identifier: Apache-2.0
#include "lib/compiler/config_json.h"

#include <iterator>
#include <set>
#include <vector>

#include "lib/common/file.h"

namespace vartml::compiler::config {
namespace {

constexpr size_t most_bytes = 1 << 20;
constexpr int most_levels = 32;

struct Position {
    size_t line = 1, column = 1;
};
Position position_of(std::string_view text, size_t offset) {
    Position at;
    for (const char c : text.substr(0, offset)) {
        ++at.column;
        if (c == '\n') ++at.line, at.column = 1;
    }
    return at;
}

// Reads characters and remembers how many.
class Counting {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;
    Counting(const char* at, size_t* read) : at_(at), read_(read) {}
    reference operator*() const { return *at_; }
    Counting& operator++() {
        ++at_;
        ++*read_;
        return *this;
    }
    Counting operator++(int) {
        Counting before = *this;
        ++*this;
        return before;
    }
    bool operator==(const Counting& other) const { return at_ == other.at_; }
    bool operator!=(const Counting& other) const { return at_ != other.at_; }

private:
    const char* at_;
    size_t* read_;
};

// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while …"
std::string reason_of(const Json::parse_error& error, std::string_view text) {
    const size_t at = error.byte > 0 ? error.byte - 1 : 0;
    for (const size_t start : {at, at > 0 ? at - 1 : 0}) {
        const auto two = text.substr(std::min(start, text.size()), 2);
        if (two == "//" || two == "/*") return "comments are not allowed";
    }
    std::string what = error.what();
    const size_t colon = what.find(": ");
    if (colon != std::string::npos) what.erase(0, colon + 2);
    return what;
}

}  // namespace

Result<Json> parse(const std::string& file) {
    const auto fail = [&](const std::string& text) {
        return Error{ErrorCode::invalid_argument, file + ": " + text};
    };
    const auto mapped = MappedFile::open(file);
    if (!mapped) return Error{ErrorCode::invalid_argument, mapped.error().message};
    const std::string_view text = as_text((*mapped)->bytes());
    if (text.size() > most_bytes) return fail("is larger than 1 MiB");
    size_t read = 0;
    std::vector<std::set<std::string>> keys;
    std::string fault;
    const auto look = [&](int depth, Json::parse_event_t event, Json& parsed) {
        if (!fault.empty()) return true;
        if (depth > most_levels) fault = "is nested deeper than 32 levels";
        if (event == Json::parse_event_t::object_start) keys.emplace_back();
        if (event == Json::parse_event_t::object_end) keys.pop_back();
        if (event == Json::parse_event_t::key &&
            !keys.back().insert(parsed.get<std::string>()).second) {
            fault = "line " + std::to_string(position_of(text, read).line) + ": key '" +
                    parsed.get<std::string>() + "' occurs twice in the same object";
        }
        return true;
    };
    try {
        Json json = Json::parse(Counting(text.data(), &read),
                                Counting(text.data() + text.size(), &read), look);
        if (!fault.empty()) return fail(fault);
        return json;
    } catch (const Json::parse_error& error) {
        if (!fault.empty()) return fail(fault);
        const Position at = position_of(text, error.byte > 0 ? error.byte - 1 : 0);
        return fail("line " + std::to_string(at.line) + ", column " + std::to_string(at.column) +
                    ": not valid JSON: " + reason_of(error, text));
    }
}

std::string is(const Json& value) {
    switch (value.type()) {
        case Json::value_t::null:
            return "is null";
        case Json::value_t::boolean:
            return "is a boolean";
        case Json::value_t::string:
            return "is a string";
        case Json::value_t::array:
            return "is an array";
        case Json::value_t::object:
            return "is an object";
        default:
            return "is a number";
    }
}

std::string in_quotes(std::string_view text) {
    return "'" + std::string(text) + "'";
}

}  // namespace vartml::compiler::config
