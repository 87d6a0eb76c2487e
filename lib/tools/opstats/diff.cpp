// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/diff.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

#include <nlohmann/json.hpp>

#include "lib/base/text.h"

namespace vartml::profiling {
namespace {

constexpr const char* kinds[] = {"bench.json", "file of vartml run, bench or density --json",
                                 "layers.csv"};
constexpr const char* words[num_changes] = {"same", "better", "worse", "gone", "new", "n/a"};

const char* to_string(ResultKind kind) {
    return kinds[static_cast<size_t>(kind)];
}

// Of a to b in percent; from 0 to something is infinite.
double percent_of(double a, double b) {
    if (a == b) return 0;
    if (a == 0) return std::copysign(std::numeric_limits<double>::infinity(), b);
    return (b - a) / std::abs(a) * 100;
}

Change judge(double percent, bool is_more_better, double threshold) {
    // A change of just the threshold is none, however it was rounded.
    if (std::abs(percent) <= threshold + 1e-9 * std::max(threshold, 1.0)) return Change::same;
    return (percent > 0) == is_more_better ? Change::better : Change::worse;
}

DiffRow compare_row(const ResultRow& a, const ResultRow& b, double threshold) {
    DiffRow row{a.name, a.unit, a.value, b.value, std::nullopt, Change::not_captured};
    if (!a.value || !b.value) return row;
    row.percent = percent_of(*a.value, *b.value);
    row.change = judge(*row.percent, a.is_more_better, threshold);
    return row;
}

std::string number(const std::optional<double>& value) {
    if (!value) return "n/a";
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", *value);
    return text;
}

std::string change_text(const std::optional<double>& percent) {
    if (!percent) return "-";
    char text[32];
    std::snprintf(text, sizeof text, "%+.1f%%", *percent);
    return text;
}

// The side that a row is not on is empty.
std::string side(const DiffRow& row, const std::optional<double>& value, Change absent) {
    return row.change == absent ? "-" : number(value);
}

std::string first_names(const ResultFile& file) {
    constexpr size_t most = 3;
    std::string text;
    for (size_t i = 0; i < std::min(most, file.rows.size()); ++i)
        text += (i ? ", '" : "'") + file.rows[i].name + '\'';
    if (file.rows.empty()) return "none";
    return file.rows.size() > most ? text + ", …" : text;
}

}  // namespace

const char* to_string(Change change) {
    return words[static_cast<size_t>(change)];
}

bool Diff::is_worse() const {
    return counts[static_cast<size_t>(Change::worse)] + counts[static_cast<size_t>(Change::gone)] >
           0;
}

Result<Diff> compare(const ResultFile& a, const ResultFile& b, double threshold) {
    if (a.kind != b.kind)
        return Error{ErrorCode::invalid_argument,
                     std::string("the first file is a ") + to_string(a.kind) + ", the second a " +
                         to_string(b.kind) + "; compare two of one kind"};
    std::map<std::string_view, const ResultRow*> of_b;
    for (const ResultRow& row : b.rows) of_b.try_emplace(row.name, &row);
    Diff diff;
    size_t common = 0;
    for (const ResultRow& row : a.rows) {
        const auto found = of_b.find(row.name);
        if (found == of_b.end()) {
            diff.rows.push_back({row.name, row.unit, row.value, {}, {}, Change::gone});
            continue;
        }
        ++common;
        diff.rows.push_back(compare_row(row, *found->second, threshold));
        of_b.erase(found);
    }
    if (common == 0)
        return Error{ErrorCode::invalid_argument, "no row is in both files; the first has " +
                                                      first_names(a) + ", the second " +
                                                      first_names(b)};
    for (const ResultRow& row : b.rows)
        if (of_b.contains(row.name))
            diff.rows.push_back({row.name, row.unit, {}, row.value, {}, Change::added});
    for (const DiffRow& row : diff.rows) ++diff.counts[static_cast<size_t>(row.change)];
    return diff;
}

std::string diff_text(const Diff& diff) {
    size_t name_width = 0, unit_width = 0;
    for (const DiffRow& row : diff.rows) {
        name_width = std::max(name_width, row.name.size());
        unit_width = std::max(unit_width, row.unit.size());
    }
    std::string text;
    for (const DiffRow& row : diff.rows) {
        const std::string name = row.name + std::string(name_width - row.name.size(), ' ');
        const std::string unit = row.unit + std::string(unit_width - row.unit.size(), ' ');
        char figures[96];
        std::snprintf(figures, sizeof figures, "  %12s  %12s  %9s  ",
                      side(row, row.a, Change::added).c_str(),
                      side(row, row.b, Change::gone).c_str(), change_text(row.percent).c_str());
        text += name + "  " + unit + figures + to_string(row.change) + '\n';
    }
    for (size_t i = 0; i < num_changes; ++i)
        text += (i ? ", " : "") + std::string(words[i]) + ' ' + std::to_string(diff.counts[i]);
    return text + '\n';
}

// Reads the files that `vartml diff` compares.
namespace {

using Json = nlohmann::ordered_json;

Error not_a_result(const std::string& where, const std::string& what) {
    return {ErrorCode::invalid_argument,
            where + ": " + what +
                "; expected what 'vartml run', 'bench' or 'density' writes with --json, bench.json "
                "of './dev bench', or a layers.csv of 'vartml opstats'"};
}

// Rows of one name are told apart by a number.
void add_row(std::map<std::string, size_t>& seen, ResultFile& file, ResultRow row) {
    const size_t count = ++seen[row.name];
    if (count > 1) row.name += " (" + std::to_string(count) + ')';
    file.rows.push_back(std::move(row));
}

// ---- JSON

std::string text_of(const Json& json, const char* key) {
    const auto at = json.find(key);
    return at == json.end() || at->is_null() ? "" : at->dump();
}

Result<ResultFile> read_json(std::string_view text, const std::string& where) {
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object() || !json.contains("rows") || !json["rows"].is_array())
        return not_a_result(where, "is no JSON object with 'rows'");
    ResultFile file;
    file.kind = json.contains("versions") ? ResultKind::run : ResultKind::bench;
    file.machine = text_of(json, "machine");
    file.versions = text_of(json, "versions");
    std::map<std::string, size_t> seen;
    for (const Json& from : json["rows"]) {
        const auto is_text = [&](const char* key) {
            return from.is_object() && from.contains(key) && from[key].is_string();
        };
        const std::string number = "row " + std::to_string(file.rows.size());
        if (!is_text("name") || !is_text("unit"))
            return not_a_result(where, number + " has no name or no unit");
        ResultRow row{from["name"], from["unit"], std::nullopt, false};
        if (!is_plain_text(row.name) || !is_plain_text(row.unit))
            return not_a_result(where, number + " has a name or a unit with control characters");
        const std::string sense = is_text("sense") ? from["sense"].get<std::string>() : "";
        if (sense != "max" && sense != "min")
            return not_a_result(where, "row '" + row.name + "' has sense '" + printable(sense, 20) +
                                           "', expected max or min");
        row.is_more_better = sense == "min";  // what the limit is: the least that passes
        const auto ours = from.find("ours");
        if (ours != from.end() && ours->is_number()) row.value = ours->get<double>();
        add_row(seen, file, std::move(row));
    }
    return file;
}

// ---- CSV

// Fields of a line; those in double quotes may hold commas, and quotes twice.
std::vector<std::string> fields_of(std::string_view line) {
    std::vector<std::string> fields(1);
    bool quoted = false;
    for (size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"')
            fields.back() += line[++i];
        else if (c == '"')
            quoted = !quoted;
        else if (c == ',' && !quoted)
            fields.emplace_back();
        else if (c != '\r')
            fields.back() += c;
    }
    return fields;
}

std::optional<double> number_of(const std::string& field) {
    double value = 0;
    const auto [stop, fault] = std::from_chars(field.data(), field.data() + field.size(), value);
    const bool whole = fault == std::errc() && stop == field.data() + field.size();
    return whole ? std::optional(value) : std::nullopt;
}

Result<ResultFile> read_layers(std::string_view text, const std::string& where) {
    ResultFile file;
    file.kind = ResultKind::layers;
    std::map<std::string, size_t> seen;
    std::vector<std::string> head;
    size_t number = 0;
    for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
        end = std::min(text.find('\n', begin), text.size());
        ++number;
        const std::string_view line = text.substr(begin, end - begin);
        if (line.empty() || line.starts_with('#')) continue;
        const std::vector<std::string> fields = fields_of(line);
        if (head.empty()) {
            head = fields;
            continue;
        }
        const auto field = [&](const char* name) -> std::string {
            const auto at = static_cast<size_t>(std::ranges::find(head, name) - head.begin());
            return at < fields.size() ? fields[at] : "";
        };
        if (fields.size() != head.size())
            return not_a_result(where, "line " + std::to_string(number) + " has " +
                                           std::to_string(fields.size()) + " fields, the first " +
                                           std::to_string(head.size()));
        // Its figure is an error of the estimate, not a time.
        if (field("index") == "mean_abs_error" || field("name") == "mean_abs_error") continue;
        const std::string partition = field("partition");
        std::string name = field("name").empty() ? field("index") : field("name");
        if (!partition.empty()) name = partition + '/' + name;
        if (!is_plain_text(name))
            return not_a_result(
                where, "line " + std::to_string(number) + " has a name with control characters");
        add_row(seen, file, {std::move(name), "us", number_of(field("meas_us")), false});
    }
    return file;
}

}  // namespace

Result<ResultFile> read_result(std::string_view text, const std::string& where) {
    const size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin != text.npos && text[begin] == '{') return read_json(text, where);
    const std::string_view head = text.substr(0, text.find('\n'));
    const std::vector<std::string> columns = fields_of(head);
    for (const char* column : {"index", "name", "partition", "meas_us"})
        if (std::ranges::find(columns, column) == columns.end())
            return not_a_result(where,
                                "has neither rows of JSON nor a column " + std::string(column));
    return read_layers(text, where);
}

}  // namespace vartml::profiling
