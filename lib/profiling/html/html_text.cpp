// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/html/html_text.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "lib/common/utf8.h"

namespace vartml::profiling {
namespace {

// Bytes of the well-formed character at the front that is no control character; 0: there is none.
size_t character_at(std::string_view text) {
    for (size_t length = 1; length <= 4 && length <= text.size(); ++length)
        if (is_plain_text(text.substr(0, length))) return length;
    return 0;
}

std::string_view entity_of(char c) {
    switch (c) {
        case '&':
            return "&amp;";
        case '<':
            return "&lt;";
        case '>':
            return "&gt;";
        case '"':
            return "&quot;";
        case '\'':
            return "&#39;";
        case '\n':
            return "\n";
        default:
            return {};
    }
}

}  // namespace

std::string html_text(std::string_view text, size_t max_bytes) {
    std::string out;
    while (!text.empty()) {
        const std::string_view entity = entity_of(text[0]);
        const size_t length = entity.empty() ? character_at(text) : 1;
        const std::string_view next = !entity.empty() ? entity
                                      : length == 0   ? "\xef\xbf\xbd"
                                                      : text.substr(0, length);
        if (next.size() > max_bytes - out.size()) return out + "…";
        out += next;
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return out;
}

std::string html_number(double value) {
    if (!std::isfinite(value)) return "0";
    char digits[400];
    const auto end =
        std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, 2).ptr;
    std::string text(digits, end);
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
    return text == "-0" ? "0" : text;
}

std::vector<std::vector<std::string>> csv_rows(std::string_view text) {
    std::vector<std::vector<std::string>> rows;
    std::vector<std::string> row;
    std::string field;
    bool quoted = false, any = false;
    const auto end_row = [&] {
        row.push_back(std::move(field));
        rows.push_back(std::move(row));
        row.clear();
        field.clear();
        any = false;
    };
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        any = any || c != '\n';
        if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"')
            field += text[++i];
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && c == ',')
            row.push_back(std::exchange(field, {}));
        else if (!quoted && c == '\n')
            end_row();
        else if (c != '\r' || quoted)
            field += c;
    }
    if (any) end_row();
    return rows;
}

std::string html_table(const HtmlTable& table, size_t max_bytes, std::string_view where) {
    const auto kind = [&](size_t column) {
        return column < table.is_text.size() && table.is_text[column] ? " class=\"name\"" : "";
    };
    std::string out = "<div class=\"wide\"><table class=\"sortable\"><thead><tr>";
    for (size_t c = 0; c < table.columns.size(); ++c)
        out += std::string("<th") + kind(c) + "><button type=\"button\">" +
               html_text(table.columns[c]) + "</button></th>";
    out += "</tr></thead><tbody>\n";
    size_t left_out = 0;
    for (const auto& row : table.rows) {
        if (out.size() > max_bytes) {
            ++left_out;
            continue;
        }
        out += "<tr>";
        for (size_t c = 0; c < row.size() && c < table.columns.size(); ++c)
            out += std::string("<td") + kind(c) + ">" + html_name(row[c]) + "</td>";
        out += "</tr>\n";
    }
    out += "</tbody></table></div>\n";
    if (left_out > 0)
        out += "<p class=\"note\">" + std::to_string(left_out) + " further rows are in " +
               std::string(where) + ".</p>\n";
    return out;
}

}  // namespace vartml::profiling
