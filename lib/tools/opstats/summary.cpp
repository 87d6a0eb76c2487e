// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/summary.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <set>
#include <utility>

#include "lib/base/text.h"
#include "lib/trace/text.h"

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

std::string text_of(const Note& note) {
    return note.key.empty() ? note.text : note.key + ": " + note.text;
}

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
    for (const Note& note : s.notes) text += "# " + text_of(note) + "\n";
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
    const auto note = std::ranges::find(summary.notes, key, &Note::key);
    return note == summary.notes.end() ? std::string_view() : note->text;
}

// The text of a summary back into its numbers.
namespace {

// Takes a line apart from its left end. After the first thing that is not there nothing more is
// taken and good() is false.
class Scanner {
public:
    explicit Scanner(std::string_view line) : rest_(line) {}
    bool good() const { return good_; }
    bool at_end() {
        skip_blanks();
        return good_ && rest_.empty();
    }
    Scanner& word(std::string_view text) {
        skip_blanks();
        return exact(text);
    }
    Scanner& exact(std::string_view text) {
        if (!good_ || !rest_.starts_with(text)) return fail();
        rest_.remove_prefix(text.size());
        return *this;
    }
    template <typename T>
    Scanner& number(T& value) {
        skip_blanks();
        return exact_number(value);
    }
    template <typename T>
    Scanner& exact_number(T& value) {
        // from_chars would take "inf" and signs, too.
        if (!good_ || rest_.empty() || rest_[0] < '0' || rest_[0] > '9') return fail();
        const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
        if (error != std::errc()) return fail();
        rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
        return *this;
    }
    // A number or N/A.
    template <typename T>
    Scanner& cell(std::optional<T>& value, std::string_view unit = "") {
        skip_blanks();
        if (good_ && rest_.starts_with("N/A")) {
            value.reset();
            return exact("N/A");
        }
        T found{};
        if (number(found).exact(unit).good()) value = found;
        return *this;
    }
    // Up to a blank.
    Scanner& token(std::string& value) {
        skip_blanks();
        const size_t size = std::min(rest_.find(' '), rest_.size());
        if (!good_ || size == 0) return fail();
        value = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return *this;
    }
    // The rest from where it is.
    Scanner& remainder(std::string& value) {
        if (good_) value = rest_;
        rest_ = {};
        return *this;
    }
    // Up to the last place where `text` stands.
    Scanner& up_to(std::string_view text, std::string& value) {
        const size_t at = good_ ? rest_.rfind(text) : rest_.npos;
        if (at == rest_.npos) return fail();
        value = rest_.substr(0, at);
        rest_.remove_prefix(at);
        return *this;
    }

private:
    Scanner& fail() {
        good_ = false;
        return *this;
    }
    void skip_blanks() {
        while (good_ && rest_.starts_with(' ')) rest_.remove_prefix(1);
    }
    std::string_view rest_;
    bool good_ = true;
};

// The core that a line names; the last header opened it.
SummaryCore* core_of(SummaryText& s, unsigned index) {
    if (s.cores.empty()) return nullptr;
    SummaryCore& core = s.cores.back();
    const bool is_new = core.rows.empty() && core.threads.empty() && core.index == 0;
    if (is_new) core.index = index;
    return core.index == index ? &core : nullptr;
}

bool take_specialization(Scanner line, SummaryText& s) {
    std::string name;
    if (!s.cores.empty() || s.specialization) return false;
    if (!line.exact("Specialization: ").remainder(name).good()) return false;
    s.specialization = std::move(name);
    return true;
}

bool take_header(Scanner line, SummaryText& s) {
    if (!line.word("core").word("ucycles").word("ucycles(%)").good()) return false;
    s.cores.emplace_back();
    return true;
}

bool take_row(Scanner line, SummaryText& s) {
    SummaryRow r;
    line.exact("c").exact_number(r.core).cell(r.ucycles).cell(r.ucycles_percent, "%");
    line.cell(r.pcycles).cell(r.pcycles_percent, "%").number(r.count).cell(r.out_kb);
    line.cell(r.ucycles_per_kb).cell(r.pcycles_per_kb).cell(r.deviation).exact("  ");
    if (!line.remainder(r.details).good()) return false;
    SummaryCore* core = core_of(s, r.core);
    if (core) core->rows.push_back(std::move(r));
    return core != nullptr;
}

bool take_total(Scanner line, SummaryText& s) {
    unsigned index = 0;
    uint64_t ucycles = 0;
    Count pcycles;
    line.exact("c").exact_number(index).exact(" total:").number(ucycles).word("ucycles");
    if (!line.cell(pcycles).word("pcycles").word("(thread max)").at_end()) return false;
    SummaryCore* core = core_of(s, index);
    if (!core) return false;
    core->total_ucycles = ucycles;
    core->total_pcycles = pcycles;
    return true;
}

bool take_thread(Scanner line, SummaryText& s) {
    unsigned index = 0;
    SummaryThread t;
    line.exact("c").exact_number(index).exact(" ").word("t").exact_number(t.thread);
    line.token(t.engine).number(t.ucycles).word("ucycles").word("[").number(t.start).exact(",");
    line.number(t.end).exact("]").cell(t.pcycles).word("pcycles").cell(t.utilization, "%");
    if (!line.word("utilization").at_end()) return false;
    SummaryCore* core = core_of(s, index);
    if (core) core->threads.push_back(std::move(t));
    return core != nullptr;
}

bool take_batch(Scanner line, SummaryText& s) {
    unsigned index = 0;
    SummaryBatch b;
    line.exact("c").exact_number(index).exact("t").exact_number(b.thread).exact(" batch ucycles:");
    line.number(b.ucycles).word("[").number(b.start).exact(",").number(b.end).exact("]");
    if (!line.word("pcycles:").cell(b.pcycles).at_end()) return false;
    SummaryCore* core = core_of(s, index);
    if (core) core->batches.push_back(b);
    return core != nullptr;
}

bool take_port(Scanner line, SummaryText& s) {
    unsigned index = 0;
    SummaryPort p;
    line.exact("c").exact_number(index).exact("t").exact_number(p.thread).exact("p");
    line.exact_number(p.port).exact(" Host_IO_Port ucycles:").cell(p.ucycles);
    if (!line.at_end()) return false;
    SummaryCore* core = core_of(s, index);
    if (core) core->ports.push_back(p);
    return core != nullptr;
}

bool take_activate(Scanner line, SummaryText& s) {
    unsigned index = 0;
    SummaryActivate a;
    line.exact("c").exact_number(index).exact("t").exact_number(a.thread);
    if (!line.exact(" activate ucycles:").cell(a.ucycles).at_end()) return false;
    SummaryCore* core = core_of(s, index);
    if (core) core->activates.push_back(a);
    return core != nullptr;
}

bool take_frequency(Scanner line, SummaryText& s) {
    unsigned index = 0;
    line.exact("c").exact_number(index).exact(": ");
    SummaryCore* core = line.good() ? core_of(s, index) : nullptr;
    if (!core) return false;
    Scanner pcycles = line;
    if (pcycles.exact("Total inference pcycle is").cell(core->inference_pcycles).at_end())
        return true;
    return line.exact("Effective frequency is").cell(core->effective_mhz, "MHz").at_end();
}

bool take_closing(Scanner line, SummaryText& s) {
    Scanner total = line, batch = line, inf = line, input = line, output = line;
    total.exact("total batch ucycles:").number(s.total_ucycles).word("[").number(s.total_start);
    if (total.exact(",").number(s.total_end).exact("]").at_end()) return true;
    batch.exact("[").up_to("] Device instance batch/s: (1/", s.network);
    batch.exact("] Device instance batch/s: (1/").cell(s.batch_seconds).exact("):");
    if (batch.cell(s.batches_per_s).at_end()) return true;
    inf.exact("[").up_to("] Device instance inf/s: (", s.network);
    inf.exact("] Device instance inf/s: (").number(s.batch).exact("/").cell(s.inference_seconds);
    if (inf.exact("):").cell(s.inferences_per_s).at_end()) return true;
    const bool is_wait = input.exact("max input wait ucycles:").cell(s.max_input_wait).at_end() ||
                         output.exact("max output wait ucycles:").cell(s.max_output_wait).at_end();
    s.has_waits = s.has_waits || is_wait;
    return is_wait;
}

bool take_note(std::string_view line, SummaryText& s) {
    if (!line.starts_with("# ")) return false;
    line.remove_prefix(2);
    const size_t colon = line.find(": ");
    if (colon == line.npos || colon == 0)
        s.notes.push_back({"", std::string(line)});
    else
        s.notes.push_back(
            {std::string(line.substr(0, colon)), std::string(line.substr(colon + 2))});
    return true;
}

bool take_line(std::string_view line, SummaryText& s) {
    constexpr bool (*forms[])(Scanner, SummaryText&) = {
        take_specialization, take_header, take_row,      take_total,     take_thread,
        take_batch,          take_port,   take_activate, take_frequency, take_closing};
    if (line.empty() || take_note(line, s)) return true;
    for (const auto form : forms)
        if (form(Scanner(line), s)) return true;
    return false;
}

}  // namespace

Result<SummaryText> parse_summary(std::string_view text, const std::string& name) {
    SummaryText summary;
    summary.has_waits = false;
    constexpr std::string_view ends[] = {
        "total batch ucycles:", "Device instance batch/s:", "Device instance inf/s:"};
    std::set<std::string_view> seen;
    size_t number = 1;
    for (; !text.empty(); ++number) {
        const size_t end = std::min(text.find('\n'), text.size());
        if (const std::string_view line = text.substr(0, end); !take_line(line, summary))
            return Error{ErrorCode::invalid_argument, name + ": line " + std::to_string(number) +
                                                          " is none of a summary: '" +
                                                          printable(line, 80) + "'"};
        for (const std::string_view closing : ends)
            if (text.substr(0, end).find(closing) != text.npos) seen.insert(closing);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (summary.cores.empty())
        return Error{ErrorCode::invalid_argument,
                     name + ": has no line 'core  ucycles  ...', which begins a summary"};
    const bool is_whole = seen.size() == std::size(ends) &&
                          std::ranges::none_of(summary.cores, [](const SummaryCore& core) {
                              return core.threads.empty();
                          });
    if (!is_whole)
        return Error{ErrorCode::invalid_argument,
                     name +
                         ": is cut off: a summary has threads of each core and ends with its "
                         "total, batch/s and inf/s"};
    return summary;
}

}  // namespace vartml::profiling
