// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/buffer/buffer_name.h"

#include <charconv>

namespace vartml::profiling {
namespace {

bool is_kept(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '+';
}

bool take(std::string_view& rest, std::string_view word) {
    if (!rest.starts_with(word)) return false;
    rest.remove_prefix(word.size());
    return true;
}

bool take(std::string_view& rest, uint64_t& number) {
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc()) return false;
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    return true;
}

}  // namespace

std::string buffer_stem(uint64_t program, uint64_t activation, uint64_t inference,
                        std::string_view network) {
    std::string stem = "aic-profiling-program-" + std::to_string(program) + "-activation-" +
                       std::to_string(activation) + "-inf-" + std::to_string(inference) + "-";
    for (const char c : network) stem += is_kept(c) ? c : '_';
    return stem;
}

std::optional<BufferName> parse_buffer_name(std::string_view file_name) {
    BufferName name;
    std::string_view rest = file_name;
    if (!rest.ends_with(buffer_suffix)) return std::nullopt;
    rest.remove_suffix(buffer_suffix.size());
    const bool matches = take(rest, "aic-profiling-program-") && take(rest, name.program) &&
                         take(rest, "-activation-") && take(rest, name.activation) &&
                         take(rest, "-inf-") && take(rest, name.inference) && take(rest, "-") &&
                         !rest.empty();
    if (!matches) return std::nullopt;
    name.network = rest;
    return name;
}

}  // namespace vartml::profiling
