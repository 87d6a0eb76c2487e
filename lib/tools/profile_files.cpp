// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/profile_files.h"

#include <cstdio>
#include <filesystem>
#include <optional>

#include "lib/common/file.h"
#include "lib/profiling/buffer/buffer_file.h"
#include "lib/profiling/buffer/buffer_name.h"
#include "lib/profiling/buffer/part_file.h"
#include "lib/profiling/latency_file.h"
#include "lib/profiling/summary/summary_build.h"
#include "lib/profiling/summary/verdict.h"
#include "lib/profiling/trace/buffer_trace.h"

namespace vartml::tools {
namespace {

using profiling::Capture;

std::string number(uint64_t value) {
    return std::to_string(value);
}

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
    return profiling::write_part_file(
        path, profiling::latency_text(
                  {program_index, s.descriptor.network, s.requested, s.descriptor.stats_batchsize},
                  s.captures));
}

// ---- reports made of the raw buffers ------------------------------------------------------------

// Stages of the job on the host, which summaries of the device alone do not have.
std::string host_note(const Capture& c) {
    struct Stage {
        const char* name;
        size_t from, to;
    };
    constexpr Stage stages[] = {
        {"enqueue", 0, 1}, {"queue wait", 1, 2},   {"pre-process", 2, 3},     {"submit", 3, 4},
        {"device", 4, 6},  {"post-process", 6, 7}, {"total round trip", 0, 8}};
    std::string text = "host:";
    for (const Stage& stage : stages) {
        const uint64_t a = c.host[stage.from], b = c.host[stage.to];
        char value[64] = "N/A";
        if (c.has_host && a != 0 && b >= a && b != profiling::not_captured)
            std::snprintf(value, sizeof value, "%.3f us", static_cast<double>(b - a) / 1000.0);
        text += std::string(&stage == stages ? " " : ", ") + stage.name + ' ' + value;
    }
    return text;
}

Result<void> write_summaries(const ProfileSamples& s, const std::string& folder) {
    for (const Capture& c : s.captures) {
        const auto buffer = profiling::BufferFile::open(buffer_of(s, folder, c));
        if (!buffer) return buffer.error();
        const auto verdict = profiling::verdict_of(*buffer, s.descriptor);
        if (!verdict) return verdict.error();
        auto summary = profiling::build_summary(*buffer, s.descriptor, *verdict);
        if (!summary) return summary.error();
        summary->notes.push_back(host_note(c));
        const std::string path = out_file(s, "aic-profiling-program-" + number(c.program_index) +
                                                 "-activation-" + number(c.activation_index) +
                                                 "-inf-" + number(c.inference_index) + ".txt");
        announce(path);
        if (auto done = profiling::write_part_file(path, profiling::text_of(*summary)); !done)
            return done;
    }
    return {};
}

Result<void> write_one_trace(const ProfileSamples& s, const std::string& folder) {
    std::vector<profiling::BufferFile> buffers;
    for (const Capture& c : s.captures) {
        auto buffer = profiling::BufferFile::open(buffer_of(s, folder, c));
        if (!buffer) return buffer.error();
        buffer->close_between_reads();
        buffers.push_back(std::move(*buffer));
    }
    std::vector<profiling::TraceSource> sources;
    for (auto& buffer : buffers) sources.push_back({&buffer, &s.descriptor, ""});
    const std::string path =
        out_file(s, "aic-profiling-program-" + number(program_index) + "-trace.json");
    announce(path);
    return profiling::write_trace(sources, {}, path);
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
    std::optional<StagedDirectory> temporary;
    if (!s.options.wants(ProfileType::raw_device_stats)) {
        std::error_code none;
        auto made = StagedDirectory::create(
            (std::filesystem::temp_directory_path(none) / "vartml-profile").string(), 0700);
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

}  // namespace vartml::tools
