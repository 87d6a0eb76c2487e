// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/estimate.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "lib/common/utf8.h"

namespace vartml::profiling {
namespace {

constexpr uint64_t last_cycle = uint64_t{1} << 62;
constexpr std::string_view blanks = " \t\r";

std::string_view trimmed(std::string_view text) {
    const size_t begin = text.find_first_not_of(blanks);
    if (begin == text.npos) return {};
    return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::optional<uint64_t> number(std::string_view text) {
    uint64_t value = 0;
    const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = fault == std::errc() && stop == text.data() + text.size();
    return whole ? std::optional(value) : std::nullopt;
}

// A scalar without its quotes and its comment; nullopt where it is none.
std::optional<std::string> scalar(std::string_view text) {
    const size_t quote = text.empty() ? 0 : text.size() - 1;
    if (text.starts_with('"') || text.starts_with('\'')) {
        size_t end = 1;
        for (; end < text.size() && text[end] != text[0]; ++end)
            if (text[0] == '"' && text[end] == '\\') ++end;
        if (end > quote) return std::nullopt;
        const std::string_view rest = trimmed(text.substr(end + 1));
        if (!rest.empty() && !rest.starts_with('#')) return std::nullopt;
        if (text[0] == '\'') return std::string(text.substr(1, end - 1));
        const auto json = nlohmann::json::parse(text.substr(0, end + 1), nullptr, false);
        return json.is_string() ? std::optional(json.get<std::string>()) : std::nullopt;
    }
    const size_t comment = text.find(" #");
    const std::string_view plain = trimmed(text.substr(0, comment));
    constexpr std::string_view structures = "[]{}&*!|>%@`";  // YAML beyond the subset
    if (!plain.empty() && structures.find(plain[0]) != structures.npos) return std::nullopt;
    return std::string(plain);
}

class Reader {
public:
    Reader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

    Result<Estimate> read() {
        for (size_t begin = 0; begin < text_.size() && !error_;) {
            const size_t end = std::min(text_.find('\n', begin), text_.size());
            ++line_;
            read_line(trimmed(text_.substr(begin, end - begin)));
            begin = end + 1;
        }
        if (!error_) finish_layer();
        if (error_) return *error_;
        std::ranges::sort(estimate_.layers, {}, &EstimateLayer::index);
        check_order();
        return std::move(estimate_);
    }

private:
    void fail(const std::string& sentence) {
        if (!error_)
            error_ = Error{ErrorCode::bad_model,
                           where_ + ": line " + std::to_string(line_) + ": " + sentence};
    }

    void read_line(std::string_view line) {
        if (line.empty() || line.starts_with('#') || line == "---" || line == "...") return;
        if (line == "{}" && !open_ && estimate_.layers.empty()) return;
        const size_t colon = line.find(':');
        const std::string_view key = trimmed(line.substr(0, colon));
        const auto value =
            colon == line.npos ? std::nullopt : scalar(trimmed(line.substr(colon + 1)));
        if (!value)
            return fail("'" + printable(line, 60) +
                        "' is not 'KEY: VALUE' with a plain or quoted value");
        if (const auto index = number(key)) return begin_layer(*index, *value);
        if (!open_)
            return fail("'" + printable(key, 60) +
                        "' stands outside of a layer; expected a number");
        take(key, *value);
    }

    void begin_layer(uint64_t index, const std::string& value) {
        finish_layer();
        if (!value.empty() && !value.starts_with('#'))
            return fail("layer " + std::to_string(index) +
                        " has a value, expected its keys on the "
                        "next lines");
        if (!indices_.insert(index).second)
            return fail("layer " + std::to_string(index) + " occurs twice");
        open_ = true;
        layer_ = {};
        layer_.index = index;
        found_.clear();
    }

    void take(std::string_view key, const std::string& value) {
        const std::string who = "layer " + std::to_string(layer_.index);
        if (!found_.emplace(key).second)
            return fail(who + " has '" + printable(key, 60) + "' twice");
        if (key == "name") {
            if (value.empty() || !is_plain_text(value))
                return fail(who + " has a name that is empty or no UTF-8 text");
            layer_.name = value;
            return;
        }
        const bool is_start = key == "start_cycle";
        if (!is_start && key != "end_cycle") {
            if (unknown_.emplace(key).second)
                estimate_.warnings.push_back(where_ + ": key '" + printable(key, 60) +
                                             "' is not known and left out");
            return;
        }
        const auto cycle = number(value);
        if (!cycle || *cycle > last_cycle)
            return fail(who + " has " + std::string(key) + " '" + printable(value, 60) +
                        "', expected a number of cycles");
        (is_start ? layer_.start_cycle : layer_.end_cycle) = *cycle;
    }

    void finish_layer() {
        if (!open_) return;
        open_ = false;
        for (const char* key : {"name", "start_cycle", "end_cycle"})
            if (!found_.contains(key))
                return fail("layer " + std::to_string(layer_.index) + " has no " + key);
        if (layer_.end_cycle < layer_.start_cycle)
            return fail("layer " + std::to_string(layer_.index) + " ends at cycle " +
                        std::to_string(layer_.end_cycle) + ", before its start at " +
                        std::to_string(layer_.start_cycle));
        estimate_.layers.push_back(layer_);
    }

    void check_order() {
        for (size_t i = 1; i < estimate_.layers.size(); ++i) {
            const EstimateLayer &a = estimate_.layers[i - 1], &b = estimate_.layers[i];
            if (b.start_cycle == a.end_cycle + 1) continue;
            const bool gap = b.start_cycle > a.end_cycle;
            estimate_.warnings.push_back(
                where_ + ": layer " + std::to_string(b.index) + " starts at cycle " +
                std::to_string(b.start_cycle) + ", layer " + std::to_string(a.index) + " ends at " +
                std::to_string(a.end_cycle) + (gap ? ": a gap" : ": an overlap"));
        }
    }

    const std::string_view text_;
    const std::string& where_;
    size_t line_ = 0;
    Estimate estimate_;
    std::optional<Error> error_;
    std::set<uint64_t> indices_;
    std::set<std::string, std::less<>> unknown_;
    bool open_ = false;  // inside a layer
    EstimateLayer layer_;
    std::set<std::string, std::less<>> found_;  // keys of the layer
};

}  // namespace

Result<Estimate> read_estimate(std::string_view text, const std::string& where) {
    return Reader(text, where).read();
}

}  // namespace vartml::profiling
