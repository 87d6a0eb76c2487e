// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/diff.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

namespace vartml::profiling {
namespace {

constexpr const char* kinds[] = {"bench.json", "vartml run --json", "layers.csv"};
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

}  // namespace vartml::profiling
