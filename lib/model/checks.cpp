// SPDX-License-Identifier: Apache-2.0
#include "lib/model/checks.h"

#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include <nlohmann/json.hpp>

#include "lib/base/text.h"

namespace vartml::artifact {

bool Checks::fail(std::string_view sentence, ErrorCode code) {
    if (!error_) error_ = Error{code, where_ + ": " + std::string(sentence)};
    return false;
}

std::string Checks::text(const flatbuffers::String* string, std::string_view what) {
    if (!string) return {};
    const std::string_view text = string->string_view();
    constexpr size_t limit = 4096;
    if (text.size() > limit) {
        fail(std::string(what) + " has " + std::to_string(text.size()) + " bytes, at most " +
             std::to_string(limit) + " are allowed");
        return {};
    }
    if (!is_plain_text(text)) {
        fail(std::string(what) + " '" + printable(text, 40) +
             "' is not UTF-8 text without control characters");
        return {};
    }
    return std::string(text);
}

std::string to_text(const std::vector<uint32_t>& shape) {
    std::string text = "[";
    for (size_t i = 0; i < shape.size(); ++i) {
        if (i) text += ',';
        text += std::to_string(shape[i]);
    }
    return text + ']';
}

std::string quoted(std::string_view name) {
    return "'" + printable(name) + "'";
}

std::optional<uint64_t> checked_size_bytes(DataType type, const std::vector<uint32_t>& shape) {
    constexpr uint64_t limit = uint64_t{1} << 40;
    uint64_t bytes = size_bytes(type);
    bool empty = false;
    for (const uint32_t n : shape) {
        // A zero must not hide the others: products of some dimensions are computed later.
        empty |= n == 0;
        if (n == 0) continue;
        if (bytes > limit / n) return std::nullopt;
        bytes *= n;
    }
    return empty ? 0 : bytes;
}

bool is_dense(const std::vector<uint32_t>& shape, const std::vector<uint32_t>& strides) {
    if (strides.size() != shape.size()) return false;
    uint64_t expected = 1;
    for (size_t i = shape.size(); i-- > 0;) {
        if (strides[i] != static_cast<uint32_t>(expected) || expected > UINT32_MAX) return false;
        expected *= shape[i];
        if (expected > uint64_t{UINT32_MAX} * UINT32_MAX / 2) return false;
    }
    return true;
}

namespace {

constexpr size_t max_levels = 64;

// Sees each part of the text once; false ends the reading.
class Walk : public nlohmann::json_sax<nlohmann::json> {
public:
    std::string fault;

    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t value) override {
        return value <= uint64_t{std::numeric_limits<int64_t>::max()} ||
               fail("holds the number " + std::to_string(value) +
                    ", integers have at most 64 bits with sign");
    }
    // The parser makes a double of an integer that it cannot hold.
    bool number_float(number_float_t, const string_t& text) override {
        return text.find_first_of(".eE") != text.npos ||
               fail("holds the number " + printable(text, 40) +
                    ", integers have at most 64 bits with sign");
    }
    bool string(string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool start_object(size_t) override {
        keys_.emplace_back();
        return check_depth();
    }
    bool key(string_t& name) override {
        return keys_.back().insert(name).second ||
               fail("has key '" + printable(name) + "' twice in one object");
    }
    bool end_object() override {
        keys_.pop_back();
        return true;
    }
    bool start_array(size_t) override {
        keys_.emplace_back();
        return check_depth();
    }
    bool end_array() override {
        keys_.pop_back();
        return true;
    }
    bool parse_error(size_t position, const std::string&,
                     const nlohmann::json::exception& e) override {
        constexpr int number_overflow = 406;
        return fail(e.id == number_overflow
                        ? "holds a number that no double can hold, at byte " +
                              std::to_string(position)
                        : "is no JSON in UTF-8 from byte " + std::to_string(position) + " on");
    }

private:
    bool fail(std::string text) {
        if (fault.empty()) fault = std::move(text);
        return false;
    }
    bool check_depth() {
        return keys_.size() <= max_levels ||
               fail("is nested deeper than " + std::to_string(max_levels) + " levels");
    }
    std::vector<std::set<std::string>> keys_;  // of the open objects; empty for an array
};

}  // namespace

std::string json_fault(std::string_view text) {
    if (text.size() > max_json_bytes)
        return "has " + std::to_string(text.size()) + " bytes, JSON may have " +
               std::to_string(max_json_bytes);
    Walk walk;
    // The parser takes a NUL for the end of the text.
    if (text.find('\0') != text.npos)
        return "is no JSON in UTF-8 from byte " + std::to_string(text.find('\0') + 1) + " on";
    const bool good = nlohmann::json::sax_parse(text, &walk);
    if (!good && walk.fault.empty()) return "is no JSON";
    return walk.fault;
}

}  // namespace vartml::artifact
