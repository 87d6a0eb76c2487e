// SPDX-License-Identifier: Apache-2.0
#include "lib/run/vart/analyzer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>

#include "lib/model/stats_descriptor.h"
#include "lib/opstats/buffer_file.h"
#include "lib/opstats/buffer_trace.h"
#include "lib/opstats/latency.h"
#include "lib/opstats/summary_build.h"
#include "lib/opstats/verdict.h"
#include "lib/run/vart/vart_errors.h"
#include "lib/trace/clock.h"
#include "lib/trace/part_file.h"
#include "lib/trace/stats_buffer.h"
#include "lib/trace/text.h"

namespace vartml::runtime {
namespace {

using profiling::Capture;
using profiling::Descriptor;
using profiling::not_captured;

// The first number that is free.
Result<std::string> make_folder() {
    const char* const named = std::getenv("VARTML_PROFILE_DIR");
    const std::string parent = named && *named ? named : ".";
    for (unsigned n = 0;; ++n) {
        std::string path =
            parent + "/vartml_profile_" + std::to_string(::getpid()) + '_' + std::to_string(n);
        if (::mkdir(path.c_str(), 0777) == 0) return path;
        if (errno != EEXIST)
            return Error{ErrorCode::io, "option 'ai_analyzer_profiling': cannot make folder " +
                                            in_quotes(path) + ": " + std::strerror(errno) +
                                            "; name one in VARTML_PROFILE_DIR"};
    }
}

// Time in operators of the NPU, or of its thread where it is the only one; nothing where neither
// says it.
std::optional<uint64_t> npu_ns(const Descriptor& d, const Capture& capture) {
    uint64_t sum = 0;
    bool has_operators = false;
    for (const auto& thread : capture.threads) {
        const bool is_npu =
            thread.engine < d.engines.size() && d.engines[thread.engine] == profiling::npu_engine;
        if (!is_npu || thread.thread != 0) continue;
        if (d.engines.size() == 1) return thread.end - thread.start;
        if (d.cores.empty() || thread.group >= d.cores[0].groups.size()) continue;
        const auto& ops = d.cores[0].groups[thread.group].ops;
        for (size_t o = 0; o < std::min(ops.size(), thread.ops.size()); ++o) {
            if (d.is_sync(ops[o])) continue;
            sum += thread.ops[o].end - thread.ops[o].start;
            has_operators = true;
        }
    }
    if (!has_operators) return std::nullopt;
    return sum;
}

std::string fixed(double value) {
    return profiling::format_text("%.3f", value);
}

uint64_t realtime_offset_ns() {
    return profiling::read_clock_ns(CLOCK_REALTIME) - profiling::monotonic_ns();
}

}  // namespace

void Analyzer::Sum::add(uint64_t ns) {
    ++count;
    total_ns += ns;
    least_ns = std::min(least_ns, ns);
    most_ns = std::max(most_ns, ns);
}

std::string Analyzer::Sum::average() const {
    if (count == 0) return "-1";
    return fixed(static_cast<double>(total_ns) / static_cast<double>(count) / 1000);
}

Analyzer::Analyzer(Descriptor descriptor, std::string folder, std::string_view entry)
    : descriptor_(std::move(descriptor)),
      descriptor_id_(profiling::descriptor_id_of(entry)),
      folder_(std::move(folder)),
      ring_(kept_captures) {}

Result<std::shared_ptr<Analyzer>> Analyzer::create(const artifact::CompiledModel& model,
                                                   const std::string& model_path) {
    auto descriptor = artifact::descriptor_of(model, model_path);
    if (!descriptor)
        return Error{ErrorCode::unsupported,
                     "option 'ai_analyzer_profiling': " + descriptor.error().message};
    auto folder = make_folder();
    if (!folder) return folder.error();
    return std::shared_ptr<Analyzer>(new Analyzer(std::move(*descriptor), std::move(*folder),
                                                  *model.find_file(profiling::descriptor_entry)));
}

unsigned Analyzer::level_of(uint64_t) noexcept {
    return descriptor_.compiled_level;
}

void Analyzer::take(const Capture& capture) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        ring_[taken_ % ring_.size()] = capture;
    } catch (...) {  // no memory: the inference counts all the same
        ring_[taken_ % ring_.size()] = {};
    }
    ++taken_;
    const auto& host = capture.host;
    if (host[8] != not_captured) round_trip_.add(host[8] - host[0]);
    provider_.add(host[6] - host[4]);
    if (const auto ns = npu_ns(descriptor_, capture)) npu_.add(*ns);
}

std::string Analyzer::summary_file(const Capture& capture) const {
    return folder_ + "/aic-profiling-program-" + std::to_string(capture.program_index) +
           "-activation-" + std::to_string(capture.activation_index) + "-inf-" +
           std::to_string(capture.inference_index) + ".txt";
}

// Without what was written it is empty.
Analyzer::~Analyzer() {
    ::rmdir(folder_.c_str());
}

std::vector<const Capture*> Analyzer::last() const {
    std::vector<const Capture*> captures;
    for (const Capture& capture : ring_)
        if (capture.captured_level > 0) captures.push_back(&capture);
    std::ranges::sort(captures, {}, &Capture::inference_index);
    return captures;
}

// Keys as AMD's public analysis scripts have them; -1 is not captured.
std::string Analyzer::summary_csv() const {
    double macs = 0;
    bool has_operators = false;
    for (const auto& core : descriptor_.cores)
        for (const auto& group : core.groups)
            for (const auto& op : group.ops) {
                macs += static_cast<double>(op.macs);
                has_operators = true;
            }
    const auto us = [](const Sum& sum, uint64_t ns) {
        return sum.count == 0 ? "-1" : fixed(static_cast<double>(ns) / 1000);
    };
    const bool has_share = npu_.count > 0 && round_trip_.count > 0 && round_trip_.total_ns > 0;
    const double share =
        has_share
            ? 100.0 * static_cast<double>(npu_.total_ns) / static_cast<double>(npu_.count) *
                  static_cast<double>(round_trip_.count) / static_cast<double>(round_trip_.total_ns)
            : -1;
    std::string text = "model_name," + descriptor_.network + '\n';
    const auto row = [&text](const std::string& key, const std::string& value) {
        text += key + ',' + value + '\n';
    };
    row("inference_count", std::to_string(taken_));
    row("batch_count", std::to_string(descriptor_.batch));
    row("clock_freq_mhz", fixed(static_cast<double>(descriptor_.nominal_clock_hz) / 1e6));
    row("average_inference_time_usec", round_trip_.average());
    row("min_inference_time_usec", us(round_trip_, round_trip_.least_ns));
    row("max_inference_time_usec", us(round_trip_, round_trip_.most_ns));
    row("average_npu_time_usec", npu_.average());
    row("average_execution_provider_time_usec", provider_.average());
    row("npu_running_percent", has_share ? fixed(share) : "-1");
    row("total_gmacs", has_operators ? fixed(macs / 1e9) : "-1");
    for (const char* way : {"read", "write"})
        for (int channel = 0; channel < 4; ++channel)
            row(std::string("peak_") + way + "_total_ch_" + std::to_string(channel) + "_cycles",
                "-1");
    return text;
}

Result<void> Analyzer::write() const {
    const std::lock_guard lock(mutex_);
    const profiling::BufferContext common{.descriptor = &descriptor_,
                                          .descriptor_id = descriptor_id_,
                                          .boot_id = profiling::boot_id_of_kernel(),
                                          .pid = static_cast<uint32_t>(::getpid())};
    const auto captures = last();
    std::vector<Capture> samples;
    std::vector<profiling::BufferFile> buffers;
    for (const Capture* capture : captures) {
        const std::string path =
            folder_ + '/' +
            profiling::buffer_stem(capture->program_index, capture->activation_index,
                                   capture->inference_index, descriptor_.network) +
            std::string(profiling::buffer_suffix);
        profiling::BufferContext context = common;
        context.anchor0_realtime_ns = capture->begin_ns + realtime_offset_ns();
        if (auto done = profiling::write_stats_buffer(*capture, context, path); !done) return done;
        auto buffer = profiling::BufferFile::open(path);
        if (!buffer) return buffer.error();
        const auto verdict = profiling::verdict_of(*buffer, descriptor_);
        if (!verdict) return verdict.error();
        const auto summary = profiling::build_summary(*buffer, descriptor_, *verdict);
        if (!summary) return summary.error();
        if (auto done =
                profiling::write_part_file(summary_file(*capture), profiling::text_of(*summary));
            !done)
            return done;
        buffers.push_back(std::move(*buffer));
        samples.push_back(*capture);
    }
    if (!buffers.empty()) {
        std::vector<profiling::TraceSource> sources;
        for (auto& buffer : buffers) sources.push_back({&buffer, &descriptor_, ""});
        const std::string program =
            folder_ + "/aic-profiling-program-" + std::to_string(samples[0].program_index);
        if (auto done = profiling::write_trace(sources, {}, program + "-trace.json"); !done)
            return done;
        if (auto done = profiling::write_part_file(
                program + "-latency.txt",
                profiling::latency_text({samples[0].program_index, descriptor_.network,
                                         samples.size(), descriptor_.stats_batchsize},
                                        samples));
            !done)
            return done;
    }
    return profiling::write_part_file(folder_ + "/summary.csv", summary_csv());
}

}  // namespace vartml::runtime
