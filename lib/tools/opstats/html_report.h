// SPDX-License-Identifier: Apache-2.0
// One inference as a page: a single file that asks for nothing else, readable on a phone.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>

#include "lib/tools/opstats/buffer_file.h"
#include "lib/tools/opstats/summary.h"
#include "lib/trace/descriptor.h"

namespace vartml::profiling {

struct Verdict;

struct HtmlOptions {
    // Of the inferences of the run; empty: the page has no histogram. Named in the page.
    std::vector<double> latencies_us;
    std::string latencies_name = "round trip";
};

// Figures are those of `summary` and `layers_csv` as they are printed; "" where there is no
// estimate. Same input, same bytes; at most 8 MiB: what is too much is counted in the page. Errors:
// io.
Result<void> write_html(BufferFile& buffer, const Descriptor& descriptor,
                        const SummaryText& summary, const Verdict& verdict,
                        const std::string& layers_csv, const HtmlOptions& options,
                        const std::string& path);

// Parts of a page of HTML. Text of any origin stays text.

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
