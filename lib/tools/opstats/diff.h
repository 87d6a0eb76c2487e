// SPDX-License-Identifier: Apache-2.0
// Two result files of one kind, row by row: what got better, what got worse.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>

namespace vartml::profiling {

enum class ResultKind { bench, run, layers };

struct ResultRow {
    std::string name, unit;
    std::optional<double> value;  // nullopt: not captured
    bool is_more_better = false;
};

struct ResultFile {
    ResultKind kind = ResultKind::bench;
    std::string machine, versions;  // "" where the file does not say
    std::vector<ResultRow> rows;
};

// Told by content: bench.json of ./dev bench, what `vartml run`, `bench` or `density` writes with
// --json, or a layers.csv of `vartml opstats`, whose rows are PARTITION/NAME. Errors:
// invalid_argument for anything else, naming `where`.
Result<ResultFile> read_result(std::string_view text, const std::string& where);

enum class Change { same, better, worse, gone, added, not_captured };
inline constexpr size_t num_changes = 6;
const char* to_string(Change change);  // "new" and "n/a" of the last two

struct DiffRow {
    std::string name, unit;
    std::optional<double> a, b, percent;
    Change change = Change::same;
};

struct Diff {
    std::vector<DiffRow> rows;  // in the order of a, then those of b alone
    std::array<size_t, num_changes> counts{};
    bool is_worse() const;  // a row is worse or gone
};

// `a` is the reference; changes of up to `threshold` percent are none. Errors: invalid_argument for
// two kinds, and where no row is in both.
Result<Diff> compare(const ResultFile& a, const ResultFile& b, double threshold);

// A line per row, and one that counts the words.
std::string diff_text(const Diff& diff);

}  // namespace vartml::profiling
