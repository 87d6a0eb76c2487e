// SPDX-License-Identifier: Apache-2.0
#include "lib/artifact/checks.h"

#include "lib/common/utf8.h"

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
    return "'" + std::string(name) + "'";
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

}  // namespace vartml::artifact
