// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/summary/summary_notes.h"

#include <algorithm>
#include <cinttypes>
#include <map>

#include "lib/common/sha256.h"
#include "lib/common/utf8.h"
#include "lib/profiling/summary/instances.h"
#include "lib/profiling/text_format.h"

namespace vartml::profiling {
namespace {

// Lines of a section that come from a file: enough for every use, and no more.
constexpr size_t max_lines = 1000;

class Notes {
public:
    Notes(const BufferFile& file, const Descriptor& descriptor, const Gaps& gaps,
          const Verdict& verdict, uint64_t hz)
        : file_(file), descriptor_(descriptor), gaps_(gaps), verdict_(verdict), hz_(hz) {}

    Result<std::vector<std::string>> run() {
        lines_ = {"vartml-opstats 1"};
        add_what();
        for (const auto step : {&Notes::add_frames, &Notes::add_ddr, &Notes::add_pmu,
                                &Notes::add_threads, &Notes::add_missing})
            if (auto r = (this->*step)(); !r) return r.error();
        for (const std::string& line : lines_of(verdict_)) lines_.push_back(line);
        return std::move(lines_);
    }

private:
    void add(const std::string& line) { lines_.push_back(line); }
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
    std::vector<std::string> lines_;
};

std::string thread_name(unsigned core, unsigned thread) {
    return "c" + std::to_string(core) + "t" + std::to_string(thread);
}

void Notes::add_what() {
    const format::Header& h = file_.header();
    const bool is_monotonic = h.clock_id == format::clock_monotonic;
    add(format_text("clock: %s, tick 1/%" PRIu64 " s, ucycle 1/%" PRIu64 " s",
                    is_monotonic ? "CLOCK_MONOTONIC" : "device counter", h.tick_hz, hz_));
    add("model: " + printable(file_.network()) + ", signature " + to_hex(h.model_signature) +
        format_text(", compiled at level %u, captured at level %u", h.compiled_level,
                    h.captured_level));
    std::string engines;
    for (const std::string& engine : descriptor_.engines) engines += " " + engine;
    add(format_text("device: software NPU %u, %u cores, %u threads, engines%s%s", h.device_index,
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
        add(format_text("frames: slot %u is %u:%" PRIu64 " of %s, pts %s ns", f.batch_slot,
                        f.stream_index, f.frame_number,
                        name == streams.end() ? "a stream without name" : name->second.c_str(),
                        pts.c_str()));
    });
    if (count > max_lines) add(format_text("frames: and %zu more", count - max_lines));
    return r;
}

Result<void> Notes::add_ddr() {
    return file_.each<format::DdrRecord>("DDRT", [&](const format::DdrRecord& d) {
        add(format_text(
            "ddr: c%u read %" PRIu64 " bytes, wrote %" PRIu64 " bytes, %s", d.core, d.read_bytes,
            d.write_bytes,
            d.source == format::ddr_source_computed ? "computed from tensor sizes" : "measured"));
    });
}

Result<void> Notes::add_pmu() {
    return file_.each<format::PmuThreadRecord>("PMUT", [&](const format::PmuThreadRecord& t) {
        for (size_t i = 0; i < file_.pmu_events().size(); ++i) {
            const std::string value =
                t.values[i] == not_captured ? "N/A" : std::to_string(t.values[i]);
            add("pmu: " + thread_name(t.core, t.thread) + " " +
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
        add("on-cpu: " + thread_name(t.core, t.thread) + " " + cpu +
            format_text(" of %.3f us", us(ns)));
    }
    const format::Header& h = file_.header();
    const double cost =
        static_cast<double>(h.record_count) * (static_cast<double>(h.record_cost_ps) / 1000);
    const std::string share =
        verdict_.device_ns > 0 ? format_text("%.2f %%", 100 * cost / verdict_.device_ns) : "N/A";
    add(format_text("overhead: %" PRIu64 " records of %.3f ns, %s of the execution; %" PRIu64
                    " lost",
                    h.record_count, static_cast<double>(h.record_cost_ps) / 1000, share.c_str(),
                    h.lost_records));
    return {};
}

Result<void> Notes::add_missing() {
    size_t count = 0;
    const auto missing = [&](const std::string& field, const std::string& reason) {
        add("not captured: " + field + ": " + reason);
    };
    auto r = file_.each_line("NOCA", [&](std::string_view name, std::string_view reason) {
        if (++count <= max_lines) missing(printable(name), printable(reason));
    });
    if (count > max_lines) add(format_text("not captured: and %zu more", count - max_lines));
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

Result<std::vector<std::string>> summary_notes(const BufferFile& file, const Descriptor& descriptor,
                                               const Gaps& gaps, const Verdict& verdict,
                                               uint64_t ucycle_hz) {
    return Notes(file, descriptor, gaps, verdict, ucycle_hz).run();
}

}  // namespace vartml::profiling
