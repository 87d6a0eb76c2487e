// SPDX-License-Identifier: Apache-2.0
// Parts of a page of HTML. Text of any origin stays text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace vartml::profiling {

// Text for an element or a quoted attribute; malformed UTF-8 and control characters become U+FFFD.
std::string html_text(std::string_view text);
// The same, cut where it is longer than a line.
std::string html_name(std::string_view text);
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
