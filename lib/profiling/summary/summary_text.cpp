// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/summary/summary_text.h"

#include <algorithm>
#include <cinttypes>

#include "lib/profiling/text_format.h"

namespace vartml::profiling {
namespace {

constexpr const char* header =
    "core  ucycles  ucycles(%)     pcycles  pcycles(%)  count      out KB  ucycles/KB  pcycles/KB"
    "  stddev(pc/KB)  opdetails";

std::string cell(const Count& value) {
    return value ? std::to_string(*value) : "N/A";
}

std::string cell(const Real& value, const char* unit = "") {
    return value ? format_text("%.2f%s", *value, unit) : "N/A";
}

std::string general(const Real& value, const char* unit = "") {
    return value ? format_text("%g%s", *value, unit) : "N/A";
}

void add_row(std::string& text, const SummaryRow& row) {
    const auto right = [&](const std::string& value, int width) {
        text += format_text(" %*s", width, value.c_str());
    };
    text += format_text("%-3s%10s", ("c" + std::to_string(row.core)).c_str(),
                        cell(row.ucycles).c_str());
    right(cell(row.ucycles_percent, "%"), 11);
    right(cell(row.pcycles), 11);
    right(cell(row.pcycles_percent, "%"), 11);
    right(std::to_string(row.count), 6);
    right(cell(row.out_kb), 11);
    right(cell(row.ucycles_per_kb), 11);
    right(cell(row.pcycles_per_kb), 11);
    right(cell(row.deviation), 14);
    text += "  " + row.details + "\n";
}

void add_threads(std::string& text, const SummaryCore& core) {
    text += format_text("c%u total: %15" PRIu64 " ucycles %15s pcycles (thread max)\n", core.index,
                        core.total_ucycles, cell(core.total_pcycles).c_str());
    for (const SummaryThread& t : core.threads) {
        const std::string busy = t.utilization ? format_text("%6.2f%%", *t.utilization) : "N/A";
        text += format_text("c%u    t%u %-8s %15" PRIu64 " ucycles [%" PRIu64 ", %" PRIu64
                            "] %15s pcycles %7s utilization\n",
                            core.index, t.thread, t.engine.c_str(), t.ucycles, t.start, t.end,
                            cell(t.pcycles).c_str(), busy.c_str());
    }
    text += "\n\n";
    for (const SummaryBatch& b : core.batches)
        text += format_text(
            "c%02ut%u batch ucycles: %16" PRIu64 " [%" PRIu64 ",%" PRIu64 "]    pcycles: %15s \n",
            core.index, b.thread, b.ucycles, b.start, b.end, cell(b.pcycles).c_str());
}

void add_core(std::string& text, const SummaryCore& core) {
    text += "\n" + std::string(header) + "\n";
    for (const SummaryRow& row : core.rows) add_row(text, row);
    text += "\n";
    add_threads(text, core);
    text += format_text("c%u: Total inference pcycle is %s\n", core.index,
                        cell(core.inference_pcycles).c_str());
    text += format_text("c%u: Effective frequency is %s\n", core.index,
                        general(core.effective_mhz, "MHz").c_str());
    for (const SummaryPort& p : core.ports)
        text += format_text("c%02ut%up%u Host_IO_Port ucycles: %16s\n", core.index, p.thread,
                            p.port, cell(p.ucycles).c_str());
    for (const SummaryActivate& a : core.activates)
        text += format_text("c%02ut%u activate ucycles: %17s\n", core.index, a.thread,
                            cell(a.ucycles).c_str());
}

}  // namespace

std::string text_of(const SummaryText& s) {
    std::string text;
    if (s.specialization) text += "Specialization: " + *s.specialization + "\n\n";
    for (const SummaryCore& core : s.cores) add_core(text, core);
    text += format_text("total batch ucycles: %16" PRIu64 " [%" PRIu64 ", %" PRIu64 "]\n",
                        s.total_ucycles, s.total_start, s.total_end);
    text += format_text("[%s] Device instance batch/s: (1/%s): %s\n", s.network.c_str(),
                        general(s.batch_seconds).c_str(), general(s.batches_per_s).c_str());
    text += format_text("[%s] Device instance inf/s: (%" PRIu64 "/%s): %s\n", s.network.c_str(),
                        s.batch, general(s.inference_seconds).c_str(),
                        general(s.inferences_per_s).c_str());
    if (s.has_waits) {
        text += format_text("max input wait ucycles: %17s\n", cell(s.max_input_wait).c_str());
        text += format_text("max output wait ucycles: %16s\n", cell(s.max_output_wait).c_str());
    }
    for (const std::string& note : s.notes) text += "# " + note + "\n";
    return text;
}

bool is_wait(const SummaryRow& row) {
    return row.details.starts_with("sync ") || row.details.starts_with("barrier ");
}

std::string_view engine_of(const SummaryRow& row) {
    std::string_view rest = row.details;
    rest.remove_prefix(std::min(rest.find(' '), rest.size()));
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    return rest.substr(0, rest.find(' '));
}

std::string_view note_of(const SummaryText& summary, std::string_view key) {
    for (const std::string_view note : summary.notes)
        if (note.starts_with(key) && note.substr(key.size()).starts_with(": "))
            return note.substr(key.size() + 2);
    return {};
}

}  // namespace vartml::profiling
