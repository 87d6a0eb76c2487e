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
#include <string_view>

#include "lib/base/file.h"
#include "lib/base/places.h"
#include "lib/base/process.h"
#include "lib/model/stats_descriptor.h"
#include "lib/run/vart/vart_errors.h"
#include "lib/trace/clock.h"
#include "lib/trace/latency_file.h"
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

// Of what a child said.
std::string_view last_line(std::string_view text) {
    while (text.ends_with('\n')) text.remove_suffix(1);
    return text.substr(text.rfind('\n') + 1);
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
      descriptor_entry_(entry),
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
    const auto captures = last();
    if (auto done = write_captures(captures); !done) return done;
    if (auto done = replace_file(folder_ + "/summary.csv", summary_csv(), Durability::none); !done)
        return done;
    return captures.empty() ? Result<void>() : write_reports();
}

Result<void> Analyzer::write_captures(std::span<const Capture* const> captures) const {
    if (captures.empty()) return {};
    const Descriptor& d = descriptor_;
    if (auto done = replace_file(folder_ + '/' + profiling::descriptor_entry, descriptor_entry_,
                                 Durability::none);
        !done)
        return done;
    profiling::BufferContext context{
        .descriptor = &d,
        .descriptor_id = profiling::descriptor_id_of(descriptor_entry_),
        .boot_id = profiling::boot_id_of_kernel(),
        .pid = static_cast<uint32_t>(::getpid())};
    std::vector<Capture> samples;
    for (const Capture* capture : captures) {
        context.anchor0_realtime_ns = capture->begin_ns + realtime_offset_ns();
        const std::string path =
            folder_ + '/' +
            profiling::buffer_stem(capture->program_index, capture->activation_index,
                                   capture->inference_index, d.network) +
            std::string(profiling::buffer_suffix);
        if (auto done = profiling::write_stats_buffer(*capture, context, path); !done) return done;
        samples.push_back(*capture);
    }
    const uint32_t program = samples.front().program_index;
    return replace_file(
        folder_ + "/aic-profiling-program-" + std::to_string(program) + "-latency.txt",
        profiling::latency_text({program, d.network, samples.size(), d.stats_batchsize}, samples),
        Durability::none);
}

Result<void> Analyzer::write_reports() const {
    Child child;
    child.arguments = {
        vartml_program(), "opstats", "--model",      folder_ + '/' + profiling::descriptor_entry,
        "--input-dir",    folder_,   "--output-dir", folder_,
        "--summary",      "--trace", "--names",      "run"};
    const auto ended = run_child(child);
    if (ended && ended->exit_status == 0) return {};
    std::string text = ended ? child.arguments[0] + " opstats failed: " : ended.error().message;
    if (ended) text += last_line(ended->stderr_tail);
    text += "; the raw buffers are in " + folder_ + ", this makes summaries and a trace of them:";
    for (const std::string& argument : child.arguments) text += ' ' + argument;
    return Error{ErrorCode::io, text};
}

}  // namespace vartml::runtime
