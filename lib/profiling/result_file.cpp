// SPDX-License-Identifier: Apache-2.0
// Reads the files that `vartml diff` compares.
#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "lib/common/utf8.h"
#include "lib/profiling/diff.h"

namespace vartml::profiling {
namespace {

using Json = nlohmann::ordered_json;

Error not_a_result(const std::string& where, const std::string& what) {
    return {ErrorCode::invalid_argument,
            where + ": " + what +
                "; expected bench.json, what 'vartml run --json' writes, or a layers.csv of "
                "'vartml opstats'"};
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
