// SPDX-License-Identifier: Apache-2.0
// The operator summary of one inference as the numbers of its text; `# ` lines are notes behind
// what parsers of the form know.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <vartml/result.h>

namespace vartml::profiling {

inline constexpr uint64_t default_ucycle_hz = 19'200'000;

// nullopt is printed as N/A.
using Count = std::optional<uint64_t>;
using Real = std::optional<double>;

// A column of a table of `Row`s.
template <typename Row>
struct Column {
    const char* name;
    std::variant<std::string Row::*, unsigned Row::*, uint64_t Row::*, Count Row::*, Real Row::*>
        cell;
    int digits = 0;  // of a Real, behind the point
    const char* unit = "";
};

// "# <key>: <text>", or "# <text>" where the key is empty.
struct Note {
    std::string key, text;
    bool operator==(const Note&) const = default;
};
std::string text_of(const Note& note);

// Operators of one kind on a core.
struct SummaryRow {
    unsigned core = 0;
    Count ucycles, pcycles;
    Real ucycles_percent, pcycles_percent;
    uint64_t count = 0;
    Real out_kb, ucycles_per_kb, pcycles_per_kb, deviation;
    std::string details;  // "<kind> <engine> <memory> (<dtype>, ...)"
};

struct SummaryThread {
    unsigned thread = 0;
    std::string engine;
    uint64_t ucycles = 0, start = 0, end = 0;
    Count pcycles;
    Real utilization;
};

struct SummaryBatch {
    unsigned thread = 0;
    uint64_t ucycles = 0, start = 0, end = 0;
    Count pcycles;
};

struct SummaryPort {
    unsigned thread = 0, port = 0;
    Count ucycles;
};

struct SummaryActivate {
    unsigned thread = 0;
    Count ucycles;
};

struct SummaryCore {
    unsigned index = 0;
    std::vector<SummaryRow> rows;
    uint64_t total_ucycles = 0;
    Count total_pcycles, inference_pcycles;
    Real effective_mhz;
    std::vector<SummaryThread> threads;
    std::vector<SummaryBatch> batches;
    std::vector<SummaryPort> ports;
    std::vector<SummaryActivate> activates;
};

struct SummaryText {
    std::optional<std::string> specialization;  // newer tools name it in the first line
    std::vector<SummaryCore> cores;
    uint64_t total_ucycles = 0, total_start = 0, total_end = 0;
    std::string network;
    Real batch_seconds, batches_per_s;  // of the line batch/s
    uint64_t batch = 1;
    Real inference_seconds, inferences_per_s;  // of the line inf/s
    bool has_waits = true;                     // newer tools leave the lines out
    Count max_input_wait, max_output_wait;
    std::vector<Note> notes;
};

std::string text_of(const SummaryText& summary);
// `name` is for messages. text_of gives the text back byte for byte. Errors: invalid_argument with
// the number of the line that is not of the form.
Result<SummaryText> parse_summary(std::string_view text, const std::string& name);

// "sync SNPU": neither has pcycles or outputs.
bool is_wait(const SummaryRow& row);
// The second word of the details.
std::string_view engine_of(const SummaryRow& row);
// The text of the first note of the key; "" where there is none.
std::string_view note_of(const SummaryText& summary, std::string_view key);

}  // namespace vartml::profiling
