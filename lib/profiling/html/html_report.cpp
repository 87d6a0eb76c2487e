// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/html/html_report.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <string_view>
#include <utility>

#include "lib/profiling/buffer/part_file.h"
#include "lib/profiling/html/html_assets.h"
#include "lib/profiling/html/html_charts.h"
#include "lib/profiling/html/html_text.h"
#include "lib/profiling/summary/verdict.h"

namespace vartml::profiling {
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

}  // namespace vartml::profiling
