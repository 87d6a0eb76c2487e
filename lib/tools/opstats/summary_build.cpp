// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/summary_build.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "lib/base/sha256.h"
#include "lib/base/text.h"
#include "lib/tools/opstats/buffer_file.h"
#include "lib/tools/opstats/instances.h"
#include "lib/tools/opstats/summary.h"
#include "lib/tools/opstats/verdict.h"
#include "lib/trace/descriptor.h"
#include "lib/trace/text.h"

namespace vartml::profiling {

// The notes at the end of a summary.

// What the builder of the rows left out or could not say.
struct Gaps {
    std::set<std::string> engines_without_pcycles;
    std::vector<std::string> unstamped;  // "c0t1"
    bool has_small_outputs = false, has_other_ports = false, has_no_activate = false;
    uint64_t left_out = 0;
};

Result<std::vector<Note>> summary_notes(const BufferFile& file, const Descriptor& descriptor,
                                        const Gaps& gaps, const Verdict& verdict,
                                        uint64_t ucycle_hz);

namespace {

constexpr double bytes_per_kb = 1024;

// As it will be printed: the rates of a row are quotients of what stands in it.
double printed(double value) {
    const std::string text = format_text("%.2f", value);
    double back = 0;
    std::from_chars(text.data(), text.data() + text.size(), back);
    return back;
}

// Operators with the same details.
struct Sums {
    bool is_wait = false;
    std::string engine;
    uint64_t count = 0, ns = 0, out_bytes = 0;
    std::optional<uint64_t> pcycles = 0;  // nullopt: one of them has none
    // Of pcycles per KB, by Welford's method; an operator without outputs has no rate.
    uint64_t rates = 0;
    double mean = 0, squares = 0;

    void add(const Instance& instance) {
        ++count;
        ns += instance.longest_ns;
        out_bytes += instance.op->out_bytes;
        if (pcycles && instance.pcycles)
            *pcycles += *instance.pcycles;
        else
            pcycles.reset();
        if (!instance.pcycles || instance.op->out_bytes == 0) return;
        const double kb = static_cast<double>(instance.op->out_bytes) / bytes_per_kb;
        const double rate = static_cast<double>(*instance.pcycles) / kb, before = rate - mean;
        mean += before / static_cast<double>(++rates);
        squares += before * (rate - mean);
    }
};

std::string details_of(const Op& op, const std::string& engine, const Descriptor& d) {
    if (d.is_sync(op) || d.is_barrier(op)) return d.kind(op) + " " + engine;
    std::string text = d.kind(op) + " " + engine + " " + d.memories[op.memory] + " ";
    for (size_t i = 0; i < op.dtypes.size(); ++i)
        text += (i == 0 ? "(" : ", ") + d.dtypes[op.dtypes[i]];
    return text + (op.dtypes.empty() ? "" : ")");
}

Count most(const Count& a, const Count& b) {
    return a && b ? std::max(*a, *b) : a ? a : b;
}

Real percent(const Count& part, const Count& whole) {
    if (!part || !whole || *whole == 0) return std::nullopt;
    return 100 * static_cast<double>(*part) / static_cast<double>(*whole);
}

Count captured(uint64_t value) {
    return value == not_captured ? Count() : Count(value);
}

class Builder {
public:
    Builder(const BufferFile& file, const Descriptor& descriptor, const Verdict& verdict,
            uint64_t hz)
        : file_(file), descriptor_(descriptor), verdict_(verdict), ucycles_(hz) {}

    Result<SummaryText> run() {
        summary_.network = printable(file_.network());
        if (auto r = read_ports(); !r) return r.error();
        add_threads();
        if (summary_.cores.empty())
            return Error{ErrorCode::bad_model, file_.path() + ": no thread of it ran"};
        if (auto r = add_operators(); !r) return r.error();
        for (SummaryCore& core : summary_.cores) add_totals(core);
        add_closing();
        auto notes = summary_notes(file_, descriptor_, gaps_, verdict_, ucycles_.hz());
        if (!notes) return notes.error();
        summary_.notes = std::move(*notes);
        return std::move(summary_);
    }

private:
    using Rows = std::map<std::string, Sums>;
    SummaryCore* core_of(unsigned index);
    Result<void> read_ports();
    void add_threads();
    Result<void> add_operators();
    Result<void> add_group(GroupReader& reader, SummaryCore& core, Rows& rows);
    void add_rows(SummaryCore& core, const Rows& rows);
    SummaryRow row_of(const SummaryCore& core, const std::string& details, const Sums& sums);
    void add_totals(SummaryCore& core);
    void add_closing();

    const BufferFile& file_;
    const Descriptor& descriptor_;
    const Verdict& verdict_;
    Ucycles ucycles_;
    std::map<std::tuple<unsigned, unsigned, unsigned>, uint64_t> waits_;  // core, thread, port
    Gaps gaps_;
    SummaryText summary_;
};

SummaryCore* Builder::core_of(unsigned index) {
    const auto at = std::ranges::find(summary_.cores, index, &SummaryCore::index);
    return at == summary_.cores.end() ? nullptr : &*at;
}

Result<void> Builder::read_ports() {
    return file_.each<format::PortRecord>("PORT", [&](const format::PortRecord& p) {
        // As many as lines can be printed of.
        if (p.wait_ticks != not_captured && waits_.size() < 4 * format::max_threads)
            waits_[{p.core, p.thread, p.port}] += file_.ticks_to_ns(p.wait_ticks);
    });
}

void Builder::add_threads() {
    for (const format::ThreadRecord& t : file_.threads()) {
        if (!was_run(t)) {
            gaps_.left_out += is_valid(t) ? 0 : 1;
            continue;
        }
        SummaryCore* core = core_of(t.core);
        if (!core) {
            core = &summary_.cores.emplace_back();
            core->index = t.core;
        }
        SummaryThread line;
        line.thread = t.thread;
        line.engine = descriptor_.engines[t.engine];
        line.start = ucycles_.stamp(file_.to_ns(t.start));
        line.end = ucycles_.stamp(file_.to_ns(t.end));
        line.ucycles = line.end - line.start;
        line.pcycles = captured(t.pcycles);
        core->batches.push_back({t.thread, line.ucycles, line.start, line.end, line.pcycles});
        Count activate = captured(file_.ticks_to_ns(t.activate_ticks));
        if (activate) activate = ucycles_.rounded(*activate);
        gaps_.has_no_activate = gaps_.has_no_activate || !activate;
        core->activates.push_back({t.thread, activate});
        core->total_ucycles = std::max(core->total_ucycles, line.ucycles);
        core->total_pcycles = most(core->total_pcycles, line.pcycles);
        const bool is_silent = (t.flags & format::stamped) == 0;
        if (is_silent && file_.header().captured_level >= level_operators)
            gaps_.unstamped.push_back("c" + std::to_string(t.core) + "t" +
                                      std::to_string(t.thread));
        core->threads.push_back(std::move(line));
    }
}

Result<void> Builder::add_operators() {
    std::vector<GroupReader> readers = group_readers(file_, descriptor_);
    std::map<unsigned, Rows> rows;
    for (GroupReader& reader : readers) {
        SummaryCore* core = core_of(reader.core());
        if (!core) continue;
        if (auto r = add_group(reader, *core, rows[reader.core()]); !r) return r;
    }
    for (SummaryCore& core : summary_.cores) add_rows(core, rows[core.index]);
    return {};
}

Result<void> Builder::add_group(GroupReader& reader, SummaryCore& core, Rows& rows) {
    const std::string& engine = descriptor_.engines[reader.group().engine];
    Instance instance;
    while (reader.next(instance)) {
        Sums& sums = rows[details_of(*instance.op, engine, descriptor_)];
        sums.is_wait = descriptor_.is_sync(*instance.op) || descriptor_.is_barrier(*instance.op);
        sums.engine = engine;
        sums.add(instance);
    }
    if (auto r = reader.status(); !r) return r;
    gaps_.left_out += reader.left_out();
    for (const GroupReader::Busy& busy : reader.busy()) {
        const auto thread = std::ranges::find(core.threads, busy.thread, &SummaryThread::thread);
        if (thread == core.threads.end()) continue;
        for (const format::ThreadRecord& t : file_.threads()) {
            if (t.core != core.index || t.thread != busy.thread) continue;
            const uint64_t ns = file_.to_ns(t.end) - file_.to_ns(t.start);
            if (ns > 0)
                thread->utilization = 100 * static_cast<double>(busy.ns) / static_cast<double>(ns);
        }
    }
    return {};
}

SummaryRow Builder::row_of(const SummaryCore& core, const std::string& details, const Sums& sums) {
    SummaryRow row;
    row.core = core.index;
    row.details = details;
    row.count = sums.count;
    row.ucycles = ucycles_.rounded(sums.ns);
    row.ucycles_percent = percent(row.ucycles, core.total_ucycles);
    if (sums.is_wait) return row;
    row.out_kb = static_cast<double>(sums.out_bytes) / bytes_per_kb;
    row.pcycles = sums.pcycles;
    row.pcycles_percent = percent(row.pcycles, core.total_pcycles);
    if (!row.pcycles && file_.has(format::has_pcycles))
        gaps_.engines_without_pcycles.insert("c" + std::to_string(core.index) + " " + sums.engine);
    const double kb = printed(*row.out_kb);
    if (kb <= 0) {
        gaps_.has_small_outputs = true;
        return row;
    }
    row.ucycles_per_kb = static_cast<double>(*row.ucycles) / kb;
    if (!row.pcycles) return row;
    row.pcycles_per_kb = static_cast<double>(*row.pcycles) / kb;
    if (sums.rates == sums.count)
        row.deviation = std::sqrt(sums.squares / static_cast<double>(sums.rates));
    return row;
}

void Builder::add_rows(SummaryCore& core, const Rows& rows) {
    for (const auto& [details, sums] : rows) core.rows.push_back(row_of(core, details, sums));
    // The map has sorted them by text.
    std::ranges::stable_sort(core.rows, std::ranges::greater{}, &SummaryRow::ucycles);
}

void Builder::add_totals(SummaryCore& core) {
    core.inference_pcycles = core.total_pcycles;
    if (core.total_pcycles && core.total_ucycles > 0)
        core.effective_mhz =
            static_cast<double>(*core.total_pcycles) /
            (static_cast<double>(core.total_ucycles) * 1e6 / static_cast<double>(ucycles_.hz()));
    if (file_.header().captured_level < level_ports) return;
    for (const unsigned port : {input_port, output_port})
        for (const SummaryThread& t : core.threads) {
            const auto wait = waits_.find({core.index, t.thread, port});
            const bool is_known = wait != waits_.end();
            core.ports.push_back(
                {t.thread, port, is_known ? Count(ucycles_.rounded(wait->second)) : Count()});
            gaps_.has_other_ports = gaps_.has_other_ports || !is_known;
            Count& longest =
                port == input_port ? summary_.max_input_wait : summary_.max_output_wait;
            longest = most(longest, core.ports.back().ucycles);
        }
}

void Builder::add_closing() {
    bool any = false;
    for (const SummaryCore& core : summary_.cores)
        for (const SummaryThread& t : core.threads) {
            summary_.total_start = any ? std::min(summary_.total_start, t.start) : t.start;
            summary_.total_end = std::max(summary_.total_end, t.end);
            any = true;
        }
    summary_.total_ucycles = summary_.total_end - summary_.total_start;
    summary_.batch = file_.header().stats_batchsize;
    const double seconds =
        static_cast<double>(summary_.total_ucycles) / static_cast<double>(ucycles_.hz());
    summary_.batch_seconds = summary_.inference_seconds = seconds;
    if (seconds <= 0) return;
    summary_.batches_per_s = 1 / seconds;
    summary_.inferences_per_s = static_cast<double>(summary_.batch) / seconds;
}

}  // namespace

Result<SummaryText> build_summary(const BufferFile& file, const Descriptor& descriptor,
                                  const Verdict& verdict, uint64_t ucycle_hz) {
    return Builder(file, descriptor, verdict, ucycle_hz).run();
}

namespace {

// Lines of a section that come from a file: enough for every use, and no more.
constexpr size_t max_lines = 1000;

class Notes {
public:
    Notes(const BufferFile& file, const Descriptor& descriptor, const Gaps& gaps,
          const Verdict& verdict, uint64_t hz)
        : file_(file), descriptor_(descriptor), gaps_(gaps), verdict_(verdict), hz_(hz) {}

    Result<std::vector<Note>> run() {
        add("", "vartml-opstats 1");
        add_what();
        for (const auto step : {&Notes::add_frames, &Notes::add_ddr, &Notes::add_pmu,
                                &Notes::add_threads, &Notes::add_missing})
            if (auto r = (this->*step)(); !r) return r.error();
        std::ranges::move(notes_of(verdict_), std::back_inserter(notes_));
        return std::move(notes_);
    }

private:
    void add(const char* key, const std::string& text) { notes_.push_back({key, text}); }
    void add_what();
    Result<void> add_frames();
    Result<void> add_ddr();
    Result<void> add_pmu();
    Result<void> add_threads();
    Result<void> add_missing();

    const BufferFile& file_;
    const Descriptor& descriptor_;
    const Gaps& gaps_;
    const Verdict& verdict_;
    uint64_t hz_;
    std::vector<Note> notes_;
};

std::string thread_name(unsigned core, unsigned thread) {
    return "c" + std::to_string(core) + "t" + std::to_string(thread);
}

void Notes::add_what() {
    const format::Header& h = file_.header();
    const bool is_monotonic = h.clock_id == format::clock_monotonic;
    add("clock", format_text("%s, tick 1/%" PRIu64 " s, ucycle 1/%" PRIu64 " s",
                             is_monotonic ? "CLOCK_MONOTONIC" : "device counter", h.tick_hz, hz_));
    add("model", printable(file_.network()) + ", signature " + to_hex(h.model_signature) +
                     format_text(", compiled at level %u, captured at level %u", h.compiled_level,
                                 h.captured_level));
    std::string engines;
    for (const std::string& engine : descriptor_.engines) engines += " " + engine;
    add("device",
        format_text("software NPU %u, %u cores, %u threads, engines%s%s", h.device_index,
                    h.core_count, h.thread_count, engines.c_str(),
                    file_.has(format::first_of_core) ? ", first inference of this core" : ""));
}

Result<void> Notes::add_frames() {
    std::map<uint32_t, std::string> streams;
    auto r = file_.each_line("STRM", [&](std::string_view index, std::string_view id) {
        if (streams.size() < max_lines)
            streams[static_cast<uint32_t>(std::strtoul(std::string(index).c_str(), nullptr, 10))] =
                printable(id);
    });
    if (!r) return r;
    size_t count = 0;
    r = file_.each<format::FrameEntry>("FRAM", [&](const format::FrameEntry& f) {
        if (++count > max_lines) return;
        const std::string pts = f.pts_ns < 0 ? "N/A" : std::to_string(f.pts_ns);
        const auto name = streams.find(f.stream_index);
        add("frames",
            format_text("slot %u is %u:%" PRIu64 " of %s, pts %s ns", f.batch_slot, f.stream_index,
                        f.frame_number,
                        name == streams.end() ? "a stream without name" : name->second.c_str(),
                        pts.c_str()));
    });
    if (count > max_lines) add("frames", format_text("and %zu more", count - max_lines));
    return r;
}

Result<void> Notes::add_ddr() {
    return file_.each<format::DdrRecord>("DDRT", [&](const format::DdrRecord& d) {
        const bool is_measured = d.source == format::ddr_source_measured;
        const auto bytes = [&](const char* what, uint64_t value) {
            return std::string(is_measured ? "measured " : "computed ") + what + ' ' +
                   (value == not_captured ? "N/A" : std::to_string(value) + " bytes");
        };
        add("ddr", format_text("c%u ", d.core) + bytes("read", d.read_bytes) + ", " +
                       bytes("write", d.write_bytes) +
                       (is_measured ? ", lines that missed the last cache" : ", by tensor sizes"));
    });
}

Result<void> Notes::add_pmu() {
    return file_.each<format::PmuThreadRecord>("PMUT", [&](const format::PmuThreadRecord& t) {
        for (size_t i = 0; i < file_.pmu_events().size(); ++i) {
            const std::string value =
                t.values[i] == not_captured ? "N/A" : std::to_string(t.values[i]);
            add("pmu", thread_name(t.core, t.thread) + " " +
                           printable(file_.pmu_events()[i].name.data()) + " " + value);
        }
    });
}

Result<void> Notes::add_threads() {
    const auto us = [](uint64_t ns) { return static_cast<double>(ns) / 1000; };
    for (const format::ThreadRecord& t : file_.threads()) {
        if (!was_run(t)) continue;
        const uint64_t ns = file_.to_ns(t.end) - file_.to_ns(t.start);
        const std::string cpu =
            t.cpu_ns == not_captured ? "N/A" : format_text("%.3f us", us(t.cpu_ns));
        add("on-cpu",
            thread_name(t.core, t.thread) + " " + cpu + format_text(" of %.3f us", us(ns)));
    }
    const format::Header& h = file_.header();
    const double cost =
        static_cast<double>(h.record_count) * (static_cast<double>(h.record_cost_ps) / 1000);
    const std::string share =
        verdict_.device_ns > 0 ? format_text("%.2f %%", 100 * cost / verdict_.device_ns) : "N/A";
    add("overhead",
        format_text("%" PRIu64 " records of %.3f ns, %s of the execution; %" PRIu64 " lost",
                    h.record_count, static_cast<double>(h.record_cost_ps) / 1000, share.c_str(),
                    h.lost_records));
    return {};
}

Result<void> Notes::add_missing() {
    size_t count = 0;
    const auto missing = [&](const std::string& field, const std::string& reason) {
        add("not captured", field + ": " + reason);
    };
    auto r = file_.each_line("NOCA", [&](std::string_view name, std::string_view reason) {
        if (++count <= max_lines) missing(printable(name), printable(reason));
    });
    if (count > max_lines) add("not captured", format_text("and %zu more", count - max_lines));
    if (!gaps_.unstamped.empty()) {
        std::string threads;
        for (const std::string& name : gaps_.unstamped) threads += " " + name;
        missing("operators of" + threads, "inside an OpenMP region of oneDNN");
    }
    for (const std::string& engine : gaps_.engines_without_pcycles)
        missing("pcycles of operators of " + engine, "its threads count none per operator");
    if (gaps_.has_small_outputs)
        missing("rates of rows with 0.00 KB", "their outputs are too small for a quotient");
    if (gaps_.has_no_activate) missing("activate of some threads", "the runtime gave none");
    if (gaps_.has_other_ports)
        missing("port waits of other threads", "one thread of a core waits for all");
    if (gaps_.left_out > 0)
        missing("records",
                std::to_string(gaps_.left_out) + " end before their start and are left out");
    return r;
}

}  // namespace

Result<std::vector<Note>> summary_notes(const BufferFile& file, const Descriptor& descriptor,
                                        const Gaps& gaps, const Verdict& verdict,
                                        uint64_t ucycle_hz) {
    return Notes(file, descriptor, gaps, verdict, ucycle_hz).run();
}

}  // namespace vartml::profiling
