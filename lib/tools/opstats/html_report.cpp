// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/html_report.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <string_view>
#include <utility>

#include "lib/base/text.h"
#include "lib/tools/opstats/html_charts.h"
#include "lib/tools/opstats/verdict.h"
#include "lib/trace/part_file.h"

namespace vartml::profiling {

// Style and script of a page.

extern const char* const html_style;
extern const char* const html_script;

namespace {

// What each part may take, so that the page stays within 8 MiB whatever the model.
constexpr size_t max_rows_bytes = size_t{1} << 20, max_layers_bytes = size_t{5} << 19,
                 max_list_bytes = size_t{1} << 18;
constexpr size_t max_line_bytes = 2000, max_pairs = 12;

constexpr const char* page_head = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
)";

using Lines = std::vector<std::string>;

Lines lines_of_text(const std::string& text) {
    Lines lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

// "<key>: <rest>" of a note.
std::pair<std::string_view, std::string_view> split(std::string_view note) {
    const size_t colon = note.find(": ");
    if (colon == note.npos) return {note, {}};
    return {note.substr(0, colon), note.substr(colon + 2)};
}

std::string section(std::string_view title, const std::string& body) {
    return "<section><h2>" + std::string(title) + "</h2>\n" + body + "</section>\n";
}

std::string text_list(const char* kind, const Lines& lines) {
    if (lines.empty()) return {};
    std::string out = std::string("<ul class=\"") + kind + "\">";
    size_t left_out = 0;
    for (const std::string& line : lines) {
        if (out.size() > max_list_bytes)
            ++left_out;
        else
            out += "<li>" + html_text(line, max_line_bytes) + "</li>\n";
    }
    if (left_out > 0) out += "<li>" + std::to_string(left_out) + " more</li>\n";
    return out + "</ul>\n";
}

// The words of the lines "Device instance batch/s: (1/<seconds>): <value>" as they are printed.
std::string figure(const Lines& summary, std::string_view words, std::string_view name,
                   std::string_view unit) {
    for (const std::string& line : summary) {
        const size_t at = line.find(words);
        if (at == line.npos) continue;
        std::string_view value = std::string_view(line).substr(at + words.size());
        value.remove_prefix(std::min(value.rfind(": ") + 2, value.size()));
        while (value.starts_with(' ')) value.remove_prefix(1);
        value = value.substr(0, value.find(" ["));
        return "<div><dt>" + html_text(name) + "</dt><dd>" + html_text(value) + " <small>" +
               html_text(unit) + "</small></dd></div>\n";
    }
    return {};
}

// Notes of one name stand together; many are folded up.
std::string fact_html(std::string_view key, const Lines& lines) {
    constexpr size_t max_open = 4;
    std::string body;
    for (const std::string& line : lines)
        body += (body.empty() ? "" : "<br>") + html_text(line, max_line_bytes);
    if (lines.size() > max_open)
        body = "<details><summary>" + std::to_string(lines.size()) + " lines</summary>" + body +
               "</details>";
    return "<div><dt>" + html_text(key) + "</dt><dd>" + body + "</dd></div>\n";
}

std::string head_html(const SummaryText& summary, const Lines& text) {
    std::string out = "<dl class=\"figures\">\n";
    out += figure(text, "inf/s: (", "inferences per second", "device");
    out += figure(text, "batch/s: (", "batches per second", "device");
    out += figure(text, "total batch ucycles:", "inference", "ucycles");
    out += figure(text, "max input wait ucycles:", "longest input wait", "ucycles");
    out += "</dl>\n<dl class=\"facts\">\n";
    std::vector<std::pair<std::string_view, Lines>> facts;
    size_t bytes = 0, left_out = 0;
    for (const std::string& note : summary.notes) {
        const auto [key, rest] = split(note);
        if (key == "not captured" || key.starts_with("verdict") || rest.empty()) continue;
        bytes += html_text(rest, max_line_bytes).size();
        if (bytes > max_list_bytes) {
            ++left_out;
            continue;
        }
        if (facts.empty() || facts.back().first != key) facts.push_back({key, {}});
        facts.back().second.emplace_back(rest);
    }
    for (const auto& [key, lines] : facts) out += fact_html(key, lines);
    out += "</dl>\n";
    if (left_out > 0)
        out += "<p class=\"note\">" + std::to_string(left_out) +
               " further notes are in the summary.</p>\n";
    return out;
}

// "compute 0.22 memory 0.43": names and figures in turn.
std::string shares_html(std::string_view text) {
    std::string bar, legend;
    std::istringstream words{std::string(text)};
    for (std::string name, value; words >> name >> value;) {
        double share = 0;
        const auto parsed = std::from_chars(value.data(), value.data() + value.size(), share);
        const bool is_known = parsed.ec == std::errc() && std::isfinite(share);
        if (is_known)
            bar += "<i class=\"" + html_text(name) +
                   "\" style=\"flex:" + html_number(std::max(share, 0.0)) + "\"></i>";
        legend += "<li><i class=\"" + html_text(name) + "\"></i>" + html_text(name) + " <b>" +
                  html_text(value) + "</b></li>";
    }
    if (legend.empty()) return {};
    return "<div class=\"shares\" role=\"img\" aria-label=\"" + html_text(text) + "\">" + bar +
           "</div>\n<ul class=\"legend\">" + legend + "</ul>\n";
}

std::string verdict_html(const Verdict& verdict) {
    std::string sentence, shares;
    Lines top, hints;
    for (const std::string& line : lines_of(verdict)) {
        const auto [key, rest] = split(line);
        if (key == "verdict")
            sentence = "<p class=\"sentence\">" + html_text(rest, max_line_bytes) + "</p>\n";
        if (key == "verdict-share") shares += shares_html(rest);
        if (key == "verdict-top") top.emplace_back(rest);
        if (key == "verdict-hint") hints.emplace_back(rest);
    }
    return sentence + shares + text_list("hints", top) + text_list("hints", hints);
}

// The rows as they are printed: ten words, then the details.
std::string operators_html(const Lines& summary, const format::Header& header) {
    constexpr size_t num_words = 10;
    HtmlTable table{{"core", "operators", "ucycles", "ucycles(%)", "pcycles", "pcycles(%)", "count",
                     "out KB", "ucycles/KB", "pcycles/KB", "stddev(pc/KB)"},
                    {},
                    {true, true}};
    for (const std::string& line : summary) {
        if (line.starts_with("# ")) break;
        std::istringstream words(line);
        std::vector<std::string> row;
        for (std::string word; row.size() < num_words && words >> word;) row.push_back(word);
        std::string details;
        std::getline(words >> std::ws, details);
        if (row.size() < num_words || details.empty()) continue;
        while (details.ends_with(' ')) details.pop_back();
        row.insert(row.begin() + 1, details);
        if (row[0].starts_with('c') && row[3].ends_with('%')) table.rows.push_back(row);
    }
    if (table.rows.empty())
        return "<p class=\"note\">No operators: compiled at level " +
               std::to_string(header.compiled_level) + ", captured at level " +
               std::to_string(header.captured_level) + "; operators need 70 of both.</p>\n";
    return html_table(table, max_rows_bytes, "the summary");
}

size_t column(const std::vector<std::string>& names, std::string_view name) {
    return static_cast<size_t>(std::ranges::find(names, name) - names.begin());
}

double number(const std::vector<std::string>& row, size_t column) {
    double value = -1;
    if (column < row.size())
        std::from_chars(row[column].data(), row[column].data() + row[column].size(), value);
    return value;
}

// Shares of the longest layers, estimate above measurement.
std::string pairs_html(const std::vector<std::string>& names,
                       std::vector<std::vector<std::string>> rows) {
    const size_t name = column(names, "name"), est = column(names, "est_share_pct"),
                 meas = column(names, "meas_share_pct");
    std::erase_if(rows, [&](const auto& r) {
        return number(r, est) < 0 || number(r, meas) < 0 || name >= r.size() || r[name].empty() ||
               r[0] == "total";
    });
    std::ranges::stable_sort(
        rows, [&](const auto& a, const auto& b) { return number(a, meas) > number(b, meas); });
    if (rows.size() > max_pairs) rows.resize(max_pairs);
    double most = 1e-9;
    for (const auto& r : rows) most = std::max({most, number(r, est), number(r, meas)});
    if (rows.empty()) return {};
    std::string out =
        "<ul class=\"legend\"><li><i class=\"est\"></i>estimated share</li><li><i "
        "class=\"meas\"></i>measured share</li></ul><div class=\"pairs\">\n";
    for (const auto& r : rows) {
        const auto bar = [&](const char* kind, size_t c) {
            return std::string("<i class=\"") + kind +
                   "\" style=\"width:" + html_number(number(r, c) / most * 100) + "%\" title=\"" +
                   html_text(r[c]) + " %\"></i>";
        };
        out += "<b>" + html_name(r[name]) + "</b><div>" + bar("est", est) + bar("meas", meas) +
               "</div>\n";
    }
    return out + "</div>\n";
}

std::string layers_html(const std::string& csv) {
    auto rows = csv_rows(csv);
    if (rows.size() < 2) return {};
    HtmlTable table;
    table.columns = rows.front();
    rows.erase(rows.begin());
    table.rows = rows;
    for (const std::string& name : table.columns)
        table.is_text.push_back(name == "name" || name == "partition" || name == "engine" ||
                                name == "bound");
    return html_table(table, max_layers_bytes, "the layers.csv of this capture") +
           pairs_html(table.columns, std::move(rows));
}

std::string not_captured_html(const SummaryText& summary) {
    Lines lines;
    for (const std::string& note : summary.notes)
        if (const auto [key, rest] = split(note); key == "not captured") lines.emplace_back(rest);
    return lines.empty() ? "<p class=\"note\">Nothing is missing.</p>\n"
                         : text_list("hints", lines);
}

std::string drawing(std::string body) {
    if (body.find("<svg") == body.npos) return body;
    return std::move(body) + "<p class=\"note picked-line\">Touch a mark to read it.</p>\n";
}

std::string whole_summary(const std::string& text) {
    std::string shown = html_text(text, max_rows_bytes);
    if (shown.ends_with("…")) shown = shown.substr(0, shown.rfind('\n')) + "\n…";
    return "<details><summary>The summary as text</summary><pre>" + shown + "</pre></details>\n";
}

}  // namespace

Result<void> write_html(BufferFile& buffer, const Descriptor& descriptor,
                        const SummaryText& summary, const Verdict& verdict,
                        const std::string& layers_csv, const HtmlOptions& options,
                        const std::string& path) {
    const auto shown = longest_ops(buffer, descriptor);
    if (!shown) return shown.error();
    const std::string text = text_of(summary);
    const Lines lines = lines_of_text(text);
    const format::Header& h = buffer.header();
    const std::string title = html_name(descriptor.network);

    auto file = PartFile::create(path);
    if (!file) return file.error();
    file->write(page_head);
    file->write("<title>" + title + " · inference " + std::to_string(h.inference_index) +
                "</title>\n<style>" + html_style + "</style>\n</head>\n<body>\n<main>\n<h1>" +
                title + "</h1>\n<p class=\"sub\">Inference " + std::to_string(h.inference_index) +
                " of program " + std::to_string(h.program_index) + ", activation " +
                std::to_string(h.activation_index) + ", on device " +
                std::to_string(h.device_index) + "</p>\n");
    file->write(section("Capture", head_html(summary, lines)));
    file->write(section("Verdict", verdict_html(verdict)));
    file->write(section("Operators", operators_html(lines, h)));
    if (const std::string layers = layers_html(layers_csv); !layers.empty())
        file->write(section("Layers: estimate and measurement", layers));
    file->write(section("Timeline", drawing(timeline_html(*shown, descriptor))));
    if (!shown->ops.empty())
        file->write(section("Roofline", drawing(roofline_html(*shown, descriptor, h))));
    if (!options.latencies_us.empty())
        file->write(section("Latency",
                            drawing(histogram_html(options.latencies_us, options.latencies_name))));
    file->write(section("Not captured", not_captured_html(summary)));
    file->write(section("Summary", whole_summary(text)));
    file->write(std::string("</main>\n<script>") + html_script + "</script>\n</body>\n</html>\n");
    return file->commit();
}

const char* const html_style = R"(
:root { color-scheme: light dark; --page: #f5f7f9; --card: #fff; --line: #dde3ea; --ink: #17202a; --dim: #5b6875;
  --accent: #0b7a4b; --compute: #2f6fde; --memory: #d9730d; --overhead: #8a63d2; --host: #7d8894; --roof: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --page: #11161c; --card: #171e26; --line: #2b3440; --ink: #e8edf2; --dim: #93a1b1; --accent: #4cc38a;
    --compute: #6c9cf5; --memory: #f0a04b; --overhead: #b497ea; --host: #93a1b1; --roof: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 76rem; margin: auto; padding: 1rem; }
h1 { font-size: 1.4rem; margin: .2rem 0 .1rem; overflow-wrap: anywhere; }
h2 { margin: 0 0 .7rem; font-size: .85rem; font-weight: 600; color: var(--dim); text-transform: uppercase; letter-spacing: .05em; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem; margin: 0 0 1rem; }
.sub, .note { color: var(--dim); font-size: .87rem; margin: .5rem 0 0; overflow-wrap: anywhere; }
.sub { margin: 0 0 1rem; }
code { font-size: .93em; }
dl { margin: 0; }
dl.facts div { display: grid; grid-template-columns: 8rem minmax(0, 1fr); gap: .2rem 1rem; padding: .2rem 0; border-top: 1px solid var(--line); }
dl.facts div:first-child { border-top: 0; }
dt { color: var(--dim); }
dd { margin: 0; overflow-wrap: anywhere; }
dl.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .6rem; margin-bottom: .8rem; }
dl.figures dt { font-size: .8rem; }
dl.figures dd { font-size: 1.25rem; font-weight: 600; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
dl.figures small { font-size: .75rem; font-weight: 400; color: var(--dim); }
.sentence { font-size: 1.25rem; font-weight: 600; margin: 0 0 .7rem; }
.shares { display: flex; height: 1.7rem; border-radius: .4rem; overflow: hidden; background: var(--line); }
.shares i { display: block; min-width: 1px; }
ul.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; margin: .5rem 0; padding: 0; font-size: .87rem; }
.legend i, .note i { display: inline-block; width: .75rem; height: .75rem; border-radius: .2rem; margin-right: .35rem; vertical-align: -.05rem; }
.note i { margin: 0 .1rem; }
i.compute { background: var(--compute); } i.memory { background: var(--memory); }
i.overhead { background: var(--overhead); } i.host { background: var(--host); } i.device { background: var(--accent); }
ul.hints { margin: .6rem 0 0; padding-left: 1.3rem; overflow-wrap: anywhere; }
.wide { overflow: auto; max-height: 32rem; margin: 0 -1rem; padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .87rem; min-width: 100%; }
th, td { text-align: right; padding: .22rem 0 .22rem 1rem; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { position: sticky; top: 0; background: var(--card); font-weight: 400; z-index: 1; }
th.name, td.name { text-align: left; }
td.name { max-width: 22rem; overflow: hidden; text-overflow: ellipsis; }
th:first-child, td:first-child { padding-left: 0; }
th button { all: unset; cursor: pointer; color: var(--dim); }
th button:focus-visible { outline: 2px solid var(--accent); }
th[aria-sort] button { color: var(--ink); font-weight: 600; }
th[aria-sort=ascending] button::after { content: " ▲"; }
th[aria-sort=descending] button::after { content: " ▼"; }
.pairs { display: grid; grid-template-columns: minmax(5rem, 14rem) minmax(0, 1fr); gap: .3rem .8rem; margin-top: 1rem; font-size: .87rem; align-items: center; }
.pairs b { font-weight: 400; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.pairs i { display: block; height: .45rem; border-radius: .2rem; margin: .1rem 0; min-width: 1px; }
i.est { background: var(--host); } i.meas { background: var(--accent); }
.lane { margin-bottom: .5rem; }
.lane b { display: block; font-size: .8rem; font-weight: 400; color: var(--dim); }
.lane svg { display: block; width: 100%; height: 2.2rem; background: var(--page); border-radius: .3rem; }
.lane svg.bars { height: 9rem; }
.lane rect { stroke: var(--card); stroke-width: .6px; vector-effect: non-scaling-stroke; }
.lane rect.picked { stroke: var(--ink); stroke-width: 2px; }
.axis { display: flex; justify-content: space-between; color: var(--dim); font-size: .8rem; font-variant-numeric: tabular-nums; }
.k0 { fill: #2f6fde; background: #2f6fde; } .k1 { fill: #1a9a6c; background: #1a9a6c; } .k2 { fill: #e08a1e; background: #e08a1e; }
.k3 { fill: #8a63d2; background: #8a63d2; } .k4 { fill: #c94f7c; background: #c94f7c; } .k5 { fill: #17a2b8; background: #17a2b8; }
.k6 { fill: #a08420; background: #a08420; } .k7 { fill: #7d8894; background: #7d8894; }
svg.plot { display: block; width: 100%; max-width: 34rem; margin: auto; }
svg.plot text { fill: var(--dim); font-size: 11px; }
svg.plot .grid { stroke: var(--line); } svg.plot .roof { stroke: var(--roof); stroke-width: 2; }
circle { fill-opacity: .75; } circle.compute { fill: var(--compute); } circle.memory { fill: var(--memory); }
circle.picked { stroke: var(--ink); stroke-width: 2; }
details summary { cursor: pointer; color: var(--dim); }
pre { overflow: auto; font-size: .8rem; line-height: 1.35; max-height: 32rem; }
@media (max-width: 40rem) { .pairs { grid-template-columns: minmax(5rem, 38%) minmax(0, 1fr); }
  main { padding: .5rem; } section { padding: .8rem; } .wide { margin: 0 -.8rem; padding: 0 .8rem; }
  dl.facts div { grid-template-columns: minmax(0, 1fr); gap: 0; } td.name { max-width: 14rem; } th, td { padding-left: .7rem; } }
)";

const char* const html_script = R"(
for (const table of document.querySelectorAll('table.sortable')) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0], first = [...body.rows];
  heads.forEach((head, column) => head.firstChild.addEventListener('click', () => {
    const down = head.getAttribute('aria-sort') !== 'descending';
    heads.forEach(other => other.removeAttribute('aria-sort'));
    head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    const text = row => row.cells[column] ? row.cells[column].textContent : '';
    const value = row => text(row).trim() === '' ? NaN : Number(text(row).replace('%', ''));
    const rows = first.map(row => ({ row, text: text(row), value: value(row) }));
    rows.sort((a, b) => {
      if (isNaN(a.value) !== isNaN(b.value)) return isNaN(a.value) ? 1 : -1;
      const order = isNaN(a.value) ? (a.text < b.text ? 1 : a.text > b.text ? -1 : 0) : a.value - b.value;
      return down ? -order : order;
    });
    body.append(...rows.map(entry => entry.row));
  }));
}
let picked = null;
for (const mark of document.querySelectorAll('.lane rect, svg.plot circle'))
  mark.addEventListener('click', () => {
    if (picked) picked.classList.remove('picked');
    picked = mark;
    mark.classList.add('picked');
    const line = mark.closest('section').querySelector('.picked-line');
    if (line) line.textContent = mark.firstElementChild.textContent;
  });
)";

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
