// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/run_profile.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <iterator>

#include <vartml/log.h>

#include "lib/artifact/compiled_model.h"
#include "lib/artifact/stats_descriptor.h"
#include "lib/doctor/doctor.h"
#include "lib/profiling/buffer/stats_buffer.h"
#include "lib/profiling/clock.h"
#include "lib/profiling/summary/verdict.h"
#include "lib/tools/profile_files.h"
#include "lib/tools/run_runner.h"

namespace vartml::tools {
namespace {

constexpr auto capture_limit = std::chrono::seconds(10);

std::string number(uint64_t value) {
    return std::to_string(value);
}

// ---- what all buffers of the run have in common -------------------------------------------------

// "int8" where most multiplications are of integers, else the type of float work.
std::string type_of_work(const profiling::Descriptor& d, const std::string& compute_type) {
    uint64_t integer = 0, all = 0;
    for (const profiling::Core& core : d.cores)
        for (const profiling::Group& group : core.groups)
            for (const profiling::Op& op : group.ops) {
                all += op.macs;
                if (std::ranges::any_of(op.dtypes, [&](uint16_t type) {
                        return d.dtypes[type] == "int8" || d.dtypes[type] == "uint8";
                    }))
                    integer += op.macs;
            }
    return all > 0 && integer * 2 > all ? "int8" : compute_type;
}

// Absent until `vartml doctor --calibrate` has measured them; the verdict says so then.
void take_peaks(const profiling::Descriptor& descriptor, const RunMeasurement& m, unsigned threads,
                profiling::BufferContext& context) {
    const auto peaks = doctor::read_peaks(doctor::peaks_key(threads));
    if (!peaks) {
        if (peaks.error().code != ErrorCode::not_found)
            log(LogLevel::warning, "", peaks.error().message);
        return;
    }
    const auto ops = doctor::ops_per_second(*peaks, type_of_work(descriptor, m.compute_type));
    context.peak_ops_per_s = static_cast<uint64_t>(ops.value_or(0));
    context.peak_bytes_per_s = static_cast<uint64_t>(peaks->bytes_per_second);
}

uint64_t realtime_ns() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(now.tv_nsec);
}

// Of one sample all there is to say, of several the median.
std::string verdict_text(const ProfileSamples& s) {
    std::vector<profiling::Verdict> verdicts;
    for (const profiling::Capture& capture : s.captures)
        verdicts.push_back(profiling::verdict_of(capture, s.context));
    std::string text;
    for (const std::string& line :
         profiling::lines_of(verdicts.size() == 1 ? verdicts[0] : profiling::median_of(verdicts)))
        text += "# " + line + '\n';
    return text;
}

// ---- what was recorded ------------------------------------------------------------------------

Result<void> collect(std::vector<Activation>& activations, ProfileSamples& s, RunMeasurement& m) {
    uint64_t missing = 0;
    for (Activation& a : activations) {
        missing += a.collector->wait_for_captures(capture_limit);
        m.device.add(a.collector->device());
        auto samples = a.collector->samples();
        std::ranges::move(samples, std::back_inserter(s.captures));
        if (a.collector->out_of_memory())
            return Error{ErrorCode::out_of_memory,
                         "not enough memory for the samples; give fewer with "
                         "--profiling-num-samples"};
    }
    if (missing > 0)
        return Error{ErrorCode::internal, number(missing) +
                                              " inferences were to be recorded and "
                                              "left nothing"};
    return {};
}

void explain_missing(const ProfileModel& model, RunMeasurement& m) {
    m.no_execution = "the runtime recorded no threads";
    m.no_waits = "recorded at level " + number(model.level) + ", waits need " +
                 number(profiling::level_ports);
    if (model.level >= profiling::level_ports) m.no_waits = "the runtime recorded no waits";
}

void note_operators(const ProfileModel& model, const ProfileOptions& options) {
    if (!options.wants(ProfileType::raw_device_stats) || model.level >= profiling::level_operators)
        return;
    const unsigned compiled = model.descriptor.compiled_level;
    std::string text = "no operator data: ";
    text += compiled < profiling::level_operators
                ? model.path + " was compiled with --stats-level=" + number(compiled) +
                      "; recompile with " + number(profiling::level_operators)
                : "recorded with --profiling-level=" + number(model.level) + ", operators need " +
                      number(profiling::level_operators);
    std::fprintf(stderr, "%s\n", text.c_str());
}

}  // namespace

Result<ProfileModel> open_profile_model(const std::string& path, const ProfileOptions& options) {
    const auto model = artifact::read(path, {.programs = false});
    if (!model) return model.error();
    auto descriptor = artifact::descriptor_of(*model, path);
    if (!descriptor) return descriptor.error();
    ProfileModel out{path, std::move(*descriptor)};
    out.descriptor_id = profiling::descriptor_id_of(*model->find_file(profiling::descriptor_entry));
    const unsigned compiled = out.descriptor.compiled_level;
    // The budget of overhead is that of the level of ports.
    out.level = options.level.value_or(options.overhead ? std::min(compiled, profiling::level_ports)
                                                        : compiled);
    if (out.level > compiled)
        return Error{ErrorCode::invalid_argument,
                     "--profiling-level: is " + number(out.level) + ", " + path +
                         " was compiled with --stats-level=" + number(compiled) +
                         "; recompile with --stats-level=" + number(out.level)};
    return out;
}

std::shared_ptr<profiling::Collector> make_collector(const ProfileModel& model,
                                                     const ProfileOptions& options,
                                                     unsigned activation) {
    profiling::CollectorOptions o{.program_index = program_index,
                                  .activation_index = activation,
                                  .level = model.level,
                                  .level_of_rest = std::min(model.level, profiling::level_ports),
                                  .num_samples = options.num_samples,
                                  .every = options.every,
                                  .duration_ns = options.duration_ms * 1'000'000};
    if (options.overhead) {
        o.num_samples = 0;
        o.level_of_rest = model.level;
    }
    return std::make_shared<profiling::Collector>(o);
}

Result<void> finish_profile(const ProfileModel& model, const RunOptions& o,
                            std::vector<Activation>& activations, RunMeasurement& m) {
    const ProfileOptions& p = o.profile;
    ProfileSamples s{.descriptor = model.descriptor,
                     .options = p,
                     .context = {.descriptor = &model.descriptor,
                                 .descriptor_id = model.descriptor_id,
                                 .boot_id = profiling::boot_id_of_kernel(),
                                 .pid = static_cast<uint32_t>(::getpid())},
                     .realtime_offset_ns = realtime_ns() - profiling::monotonic_ns(),
                     .requested = p.num_samples * activations.size()};
    explain_missing(model, m);
    if (auto done = collect(activations, s, m); !done) return done;
    if (s.captures.empty())
        return Error{ErrorCode::not_found,
                     "no inference was recorded: all of them lie behind the end of "
                     "--profiling-duration"};
    take_peaks(model.descriptor, m, o.threads, s.context);
    m.verdict = verdict_text(s);
    note_operators(model, p);
    if (p.wants_files() && s.captures.size() < s.requested)
        log(LogLevel::warning, "",
            "--profiling-num-samples: asked for " + number(s.requested) + ", recorded " +
                number(s.captures.size()));
    return p.wants_files() ? write_profile_files(s) : Result<void>();
}

void explain_no_profile(const vart::Runner& runner, RunMeasurement& m) {
    const auto compiled = property<uint32_t>(runner, "stats_level");
    m.no_execution = compiled < profiling::level_inference
                         ? "the model was compiled with --stats-level=" + number(compiled) +
                               "; recompile with " + number(profiling::level_inference) + " or more"
                         : "not recorded; add --profiling-level=" +
                               number(std::min(compiled, profiling::level_ports));
    m.no_waits = m.no_execution;
    m.verdict = "# verdict: N/A (" + m.no_execution + ")\n";
}

}  // namespace vartml::tools
