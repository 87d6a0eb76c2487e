// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/reports.h"

#include <utility>
#include <vector>

#include "lib/base/file.h"
#include "lib/tools/opstats/buffer_file.h"
#include "lib/tools/opstats/summary_build.h"
#include "lib/tools/opstats/verdict.h"
#include "lib/trace/text.h"

namespace vartml::profiling {
namespace {

// Stages of the job on the host, which summaries of the device alone do not have.
std::string host_note(const BufferFile& buffer) {
    struct Stage {
        const char* name;
        size_t from, to;
    };
    constexpr Stage stages[] = {
        {"enqueue", 0, 1}, {"queue wait", 1, 2},   {"pre-process", 2, 3},     {"submit", 3, 4},
        {"device", 4, 6},  {"post-process", 6, 7}, {"total round trip", 0, 8}};
    std::string text;
    for (const Stage& stage : stages) {
        const uint64_t a = buffer.host() ? (*buffer.host())[stage.from] : 0,
                       b = buffer.host() ? (*buffer.host())[stage.to] : 0;
        const bool is_there = a != 0 && b >= a && b != not_captured;
        text += std::string(&stage == stages ? "" : ", ") + stage.name + ' ' +
                (is_there ? format_text("%.3f us",
                                        static_cast<double>(buffer.ticks_to_ns(b - a)) / 1000.0)
                          : "N/A");
    }
    return text;
}

std::string program_stem(const RunReports& reports, const BufferFile& buffer) {
    return without_trailing_slashes(reports.out_dir) + "/aic-profiling-program-" +
           std::to_string(buffer.header().program_index);
}

}  // namespace

std::string run_summary_path(const RunReports& reports, const BufferFile& buffer) {
    return program_stem(reports, buffer) + "-activation-" +
           std::to_string(buffer.header().activation_index) + "-inf-" +
           std::to_string(buffer.header().inference_index) + ".txt";
}

Result<void> write_run_summaries(const RunReports& reports) {
    for (const std::string& from : reports.buffers) {
        const auto buffer = BufferFile::open(from);
        if (!buffer) return buffer.error();
        const auto verdict = verdict_of(*buffer, reports.descriptor);
        if (!verdict) return verdict.error();
        auto summary = build_summary(*buffer, reports.descriptor, *verdict, reports.ucycle_hz);
        if (!summary) return summary.error();
        summary->notes.push_back({"host", host_note(*buffer)});
        const std::string path = run_summary_path(reports, *buffer);
        reports.announce(path);
        if (auto done = replace_file(path, text_of(*summary), Durability::none); !done) return done;
    }
    return {};
}

Result<void> write_run_trace(const RunReports& reports, const TraceOptions& options) {
    std::vector<BufferFile> buffers;
    for (const std::string& from : reports.buffers) {
        auto buffer = BufferFile::open(from);
        if (!buffer) return buffer.error();
        buffer->close_between_reads();
        buffers.push_back(std::move(*buffer));
    }
    if (buffers.empty()) return {};
    std::vector<TraceSource> sources;
    for (BufferFile& buffer : buffers) sources.push_back({&buffer, &reports.descriptor, ""});
    const std::string path = program_stem(reports, buffers.front()) + "-trace.json";
    reports.announce(path);
    return write_trace(sources, options, path);
}

}  // namespace vartml::profiling
