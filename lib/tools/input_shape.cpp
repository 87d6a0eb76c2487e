// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/input_shape.h"

#include <charconv>
#include <string_view>
#include <utility>

namespace vartml::tools {
namespace {

bool parse_number(std::string_view text, int64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

}  // namespace

Result<void> take_input_shape(const std::string& text, InputShapes& shapes) {
    const size_t colon = text.rfind(':');
    const Error wrong{
        ErrorCode::invalid_argument,
        "--input-shape: is '" + text + "', expected NAME:D0,D1,... as in x:1,3,640,640"};
    if (colon == std::string::npos || colon == 0) return wrong;
    std::vector<int64_t> dims;
    for (std::string_view rest = std::string_view(text).substr(colon + 1);;) {
        const size_t comma = rest.find(',');
        int64_t d = 0;
        if (!parse_number(rest.substr(0, comma), d)) return wrong;
        dims.push_back(d);
        if (comma == std::string_view::npos) break;
        rest.remove_prefix(comma + 1);
    }
    if (!shapes.emplace(text.substr(0, colon), std::move(dims)).second)
        return Error{ErrorCode::invalid_argument,
                     "--input-shape: names input '" + text.substr(0, colon) + "' twice"};
    return {};
}

}  // namespace vartml::tools
