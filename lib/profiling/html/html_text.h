// SPDX-License-Identifier: Apache-2.0
// Parts of a page of HTML. Text of any origin stays text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace vartml::profiling {

// Text for an element or a quoted attribute; malformed UTF-8 and control characters become U+FFFD.
// What would be longer than `max_bytes` is cut, with "…".
std::string html_text(std::string_view text, size_t max_bytes = std::string::npos);
// The same for a name in a table or a drawing.
inline std::string html_name(std::string_view text) {
    constexpr size_t max_bytes = 160;
    return html_text(text, max_bytes);
}
// Two decimals at most, never in exponent form: places in a drawing.
std::string html_number(double value);

// Records of a CSV text; a field in quotes may hold commas, quotes and line ends.
std::vector<std::vector<std::string>> csv_rows(std::string_view text);

struct HtmlTable {
    std::vector<std::string> columns;
    std::vector<std::vector<std::string>> rows;
    std::vector<bool> is_text;  // by column; numbers stand to the right
};
// A table whose columns sort by a click. Rows above `max_bytes` are counted in a line that says
// where they are.
std::string html_table(const HtmlTable& table, size_t max_bytes, std::string_view where);

}  // namespace vartml::profiling
