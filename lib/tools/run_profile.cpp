// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <vartml/log.h>
#include <vartml/result.h>

#include "lib/base/file.h"
#include "lib/model/compiled_model.h"
#include "lib/model/entries.h"
#include "lib/model/stats_descriptor.h"
#include "lib/tools/doctor/doctor.h"
#include "lib/tools/opstats/collector.h"
#include "lib/tools/opstats/reports.h"
#include "lib/tools/opstats/verdict.h"
#include "lib/trace/capture.h"
#include "lib/trace/clock.h"
#include "lib/trace/latency_file.h"
#include "lib/trace/stats_buffer.h"

namespace vartml::tools {

// Files of recorded inferences: raw buffers, summaries, a trace, a table of latencies.

inline constexpr uint32_t program_index = 0;  // in load order; `vartml run` loads one model

struct ProfileSamples {
    const profiling::Descriptor& descriptor;
    const ProfileOptions& options;
    profiling::BufferContext context;
    uint64_t realtime_offset_ns = 0;                // of CLOCK_REALTIME to CLOCK_MONOTONIC
    uint64_t requested = 0;                         // of all activations
    std::vector<profiling::Capture> captures = {};  // by activation and inference
};

// Prints each name before it writes the file. A file that cannot be written leaves nothing of
// itself. Errors: io.
Result<void> write_profile_files(const ProfileSamples& samples);

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
    for (const profiling::Note& note :
         profiling::notes_of(verdicts.size() == 1 ? verdicts[0] : profiling::median_of(verdicts)))
        text += "# " + text_of(note) + '\n';
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

namespace {

// What the activations recorded, and what `m` says of the device.
Result<ProfileSamples> take_samples(const ProfileModel& model, const RunOptions& o,
                                    std::vector<Activation>& activations, RunMeasurement& m) {
    ProfileSamples s{.descriptor = model.descriptor,
                     .options = o.profile,
                     .context = {.descriptor = &model.descriptor,
                                 .descriptor_id = model.descriptor_id,
                                 .boot_id = profiling::boot_id_of_kernel(),
                                 .pid = static_cast<uint32_t>(::getpid())},
                     .realtime_offset_ns = realtime_ns() - profiling::monotonic_ns(),
                     .requested = o.profile.num_samples * activations.size()};
    explain_missing(model, m);
    if (auto done = collect(activations, s, m); !done) return done.error();
    if (s.captures.empty())
        return Error{ErrorCode::not_found,
                     "no inference was recorded: all of them lie behind the end of "
                     "--profiling-duration"};
    take_peaks(model.descriptor, m, o.threads, s.context);
    m.verdict = verdict_text(s);
    return s;
}

}  // namespace

Result<void> finish_profile(const ProfileModel& model, const RunOptions& o,
                            std::vector<Activation>& activations, RunMeasurement& m) {
    const ProfileOptions& p = o.profile;
    const auto samples = take_samples(model, o, activations, m);
    if (!samples) return samples.error();
    note_operators(model, p);
    if (p.wants_files() && samples->captures.size() < samples->requested)
        log(LogLevel::warning, "",
            "--profiling-num-samples: asked for " + number(samples->requested) + ", recorded " +
                number(samples->captures.size()));
    return p.wants_files() ? write_profile_files(*samples) : Result<void>();
}

void explain_no_profile(const vart::Runner& runner, RunMeasurement& m) {
    const auto compiled = property<uint32_t>(runner, "stats_level");
    m.no_execution = compiled < profiling::level_inference
                         ? "the model was compiled with --stats-level=" + number(compiled) +
                               "; recompile with " + number(profiling::level_inference) + " or more"
                         : "not recorded; add --profiling-level=" +
                               number(std::min(compiled, profiling::level_ports));
    m.no_waits = m.no_execution;
}

namespace {

using profiling::Capture;

// Of a raw buffer in the folder of them.
std::string buffer_of(const ProfileSamples& s, const std::string& folder, const Capture& c) {
    return folder + '/' +
           profiling::buffer_stem(c.program_index, c.activation_index, c.inference_index,
                                  s.descriptor.network) +
           std::string(profiling::buffer_suffix);
}

std::string out_file(const ProfileSamples& s, const std::string& name) {
    return without_trailing_slashes(s.options.out_dir) + '/' + name;
}

void announce(const std::string& path) {
    std::error_code none;
    if (std::filesystem::exists(path, none))
        std::printf("Deleting previous file: %s\n", path.c_str());
    std::printf("Writing file:%s\n", path.c_str());
}

Result<void> write_buffers(const ProfileSamples& s, const std::string& folder) {
    for (const Capture& capture : s.captures) {
        const std::string path = buffer_of(s, folder, capture);
        if (s.options.wants(ProfileType::raw_device_stats)) announce(path);
        profiling::BufferContext context = s.context;
        context.anchor0_realtime_ns = capture.begin_ns + s.realtime_offset_ns;
        if (auto done = profiling::write_stats_buffer(capture, context, path); !done) return done;
    }
    return {};
}

Result<void> write_latency(const ProfileSamples& s, const std::string&) {
    const std::string path =
        out_file(s, "aic-profiling-program-" + number(program_index) + "-latency.txt");
    announce(path);
    return replace_file(path,
                        profiling::latency_text({program_index, s.descriptor.network, s.requested,
                                                 s.descriptor.stats_batchsize},
                                                s.captures),
                        Durability::none);
}

// ---- reports made of the raw buffers ------------------------------------------------------------

std::vector<std::string> buffers_of(const ProfileSamples& s, const std::string& folder) {
    std::vector<std::string> paths;
    for (const Capture& c : s.captures) paths.push_back(buffer_of(s, folder, c));
    return paths;
}

Result<void> write_summaries(const ProfileSamples& s, const std::string& folder) {
    const auto paths = buffers_of(s, folder);
    return profiling::write_run_summaries({paths, s.descriptor, s.options.out_dir, announce});
}

Result<void> write_one_trace(const ProfileSamples& s, const std::string& folder) {
    const auto paths = buffers_of(s, folder);
    return profiling::write_run_trace({paths, s.descriptor, s.options.out_dir, announce});
}

struct Writer {
    ProfileType type;
    Result<void> (*write)(const ProfileSamples&, const std::string& buffers);
};
constexpr Writer writers[] = {
    {ProfileType::stats, write_summaries},
    {ProfileType::trace, write_one_trace},
    {ProfileType::latency, write_latency},
};

}  // namespace

Result<void> write_profile_files(const ProfileSamples& s) {
    // Reports are made of raw buffers alone, whether or not those stay.
    std::string folder = without_trailing_slashes(s.options.out_dir);
    std::optional<artifact::ExtractionFolder> temporary;
    if (!s.options.wants(ProfileType::raw_device_stats)) {
        auto made = artifact::ExtractionFolder::create({});
        if (!made) return made.error();
        temporary.emplace(std::move(*made));
        folder = temporary->path();
    }
    if (auto done = write_buffers(s, folder); !done) return done;
    for (const Writer& writer : writers)
        if (s.options.wants(writer.type))
            if (auto done = writer.write(s, folder); !done) return done;
    return {};
}

Result<std::vector<std::string>> write_raw_buffers(const ProfileModel& model, const RunOptions& o,
                                                   std::vector<Activation>& activations,
                                                   RunMeasurement& m, const std::string& folder) {
    const auto samples = take_samples(model, o, activations, m);
    if (!samples) return samples.error();
    if (auto done = write_buffers(*samples, folder); !done) return done.error();
    return buffers_of(*samples, folder);
}

}  // namespace vartml::tools
