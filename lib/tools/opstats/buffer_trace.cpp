// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/buffer_trace.h"

#include <algorithm>
#include <set>

#include "lib/tools/opstats/host_events.h"
#include "lib/tools/opstats/trace_args.h"
#include "lib/tools/opstats/trace_device.h"
#include "lib/tools/opstats/trace_file.h"

namespace vartml::profiling {
namespace {

constexpr size_t max_not_captured = 1000;

std::string uuid_of(const std::array<uint8_t, 16>& id) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (size_t i = 0; i < id.size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        text += {digits[id[i] >> 4], digits[id[i] & 15]};
    }
    return text;
}

// A stamp of the host that is there.
bool has(const HostStamps& stamps, size_t index) {
    return stamps[index] != 0 && stamps[index] != not_captured;
}

Error cannot_show(const BufferFile& buffer, const std::string& what) {
    return {ErrorCode::unsupported, buffer.path() + ": " + what};
}

class TraceWriter {
public:
    TraceWriter(std::span<const TraceSource> sources, const TraceOptions& options)
        : options_(options) {
        for (const TraceSource& source : sources)
            if (!selected_cores(source, options).empty()) sources_.push_back(&source);
        // Lanes take slices in the order of time.
        std::ranges::stable_sort(sources_, {}, [](const TraceSource* s) {
            return s->buffer->to_ns(s->buffer->threads()[0].start);
        });
    }
    Result<void> check(std::span<const TraceSource> all) const;
    Result<void> write(const std::string& path);

private:
    Result<std::string> other_data() const;
    MergedJobs jobs() const;
    Result<void> write_host(TraceFile& out, TraceLanes& lanes);
    void write_queue_wait(const BufferFile& buffer, const Track& lane, TraceFile& out);
    void write_arrows(const MergedJobs& jobs, TraceFile& out);

    const TraceOptions& options_;
    std::vector<const TraceSource*> sources_;
    std::vector<std::vector<uint64_t>> flow_ids_;  // by source
    std::vector<std::vector<ArrowPoint>> points_;  // by source, in the order of time
    TraceIds ids_;
};

Result<void> TraceWriter::check(std::span<const TraceSource> all) const {
    if (sources_.empty()) {
        std::string what = all.empty() ? "no stats buffer" : all.front().buffer->path();
        return Error{ErrorCode::not_found,
                     what +
                         ": has none of the cores and devices that are selected; give others to "
                         "--select-cores and --select-devices"};
    }
    for (const TraceSource* source : sources_) {
        const uint32_t device = source->buffer->header().device_index;
        if (device >= max_devices)
            return cannot_show(*source->buffer, "device " + std::to_string(device) +
                                                    "; a trace numbers devices below " +
                                                    std::to_string(max_devices));
        const uint16_t core = selected_cores(*source, options_).back();
        if (core >= max_cores)
            return cannot_show(*source->buffer, "core " + std::to_string(core) +
                                                    "; a trace numbers cores below " +
                                                    std::to_string(max_cores));
        if (source->buffer->header().boot_id != sources_[0]->buffer->header().boot_id)
            return cannot_show(*source->buffer,
                               "is of another boot than " + sources_[0]->buffer->path());
    }
    return {};
}

Result<std::string> TraceWriter::other_data() const {
    const BufferFile& first = *sources_[0]->buffer;
    const format::Header& h = first.header();
    std::string text;
    JsonMembers members(text);
    members.number("vartml-trace", 1);
    members.text("clock", "CLOCK_MONOTONIC");
    members.text("boot_id", uuid_of(h.boot_id));
    members.text("network", sources_[0]->descriptor->network);
    members.number("compiledLevel", h.compiled_level);
    members.number("capturedLevel", h.captured_level);
    uint64_t uncertainty = 0;
    for (const TraceSource* source : sources_)
        uncertainty = std::max(uncertainty, source->buffer->header().anchor_uncertainty_ns);
    members.number("uncertaintyNs", uncertainty);
    std::string& list = members.key("notCaptured");
    list += '[';
    size_t count = 0;
    for (const TraceSource* source : sources_) {
        const std::string label = source->label.empty() ? "" : source->label + ": ";
        const auto read = source->buffer->each_line("NOCA", [&](auto field, auto reason) {
            if (count == max_not_captured) return;
            if (count++ > 0) list += ',';
            append_quoted(list, label + std::string(field) + ": " + std::string(reason));
        });
        if (!read) return read.error();
    }
    list += ']';
    return text;
}

MergedJobs TraceWriter::jobs() const {
    MergedJobs jobs;
    jobs.begin_ns = not_captured;
    for (size_t i = 0; i < sources_.size(); ++i) {
        const BufferFile& buffer = *sources_[i]->buffer;
        for (const uint64_t id : flow_ids_[i]) jobs.flow_ids[id];
        jobs.job_keys.insert(job_args(buffer, 0).job_key);
        const auto cover = [&](uint64_t tick) {
            jobs.begin_ns = std::min(jobs.begin_ns, buffer.to_ns(tick));
            jobs.end_ns = std::max(jobs.end_ns, buffer.to_ns(tick));
        };
        for (const auto& thread : buffer.threads())
            for (const uint64_t tick : {thread.start, thread.end})
                if (tick != 0 && tick != not_captured) cover(tick);
        if (buffer.host())
            for (size_t s = 0; s < buffer.host()->size(); ++s)
                if (has(*buffer.host(), s)) cover((*buffer.host())[s]);
    }
    return jobs;
}

struct Stage {
    const char* name;
    size_t from, to;  // stamps
};
constexpr Stage stages[] = {
    {"enqueue", 0, 1}, {"pre-process", 2, 3}, {"submit", 3, 4}, {"post-process", 6, 7}};

bool is_known(const BufferFile& buffer, const Stage& stage) {
    const HostStamps& stamps = *buffer.host();
    return has(stamps, stage.from) && has(stamps, stage.to) &&
           stamps[stage.to] >= stamps[stage.from];
}

std::string host_args(const BufferFile& buffer) {
    const JobArgs job = job_args(buffer, 0);
    std::string args;
    JsonMembers members(args);
    if (!job.frames.empty()) members.key("frames") += job.frames;
    members.text("jobKey", job.job_key);
    return args;
}

std::string host_lane(const TraceSource& source) {
    const format::Header& h = source.buffer->header();
    return "program " + std::to_string(h.program_index) + " activation " +
           std::to_string(h.activation_index) + (source.label.empty() ? "" : " " + source.label);
}

void TraceWriter::write_queue_wait(const BufferFile& buffer, const Track& lane, TraceFile& out) {
    if (!is_known(buffer, {"", 1, 2})) return;
    const HostStamps& stamps = *buffer.host();
    const std::string args = host_args(buffer);
    FileEvent wait{.phase = 'b',
                   .name = "queue wait",
                   .category = "queue",
                   .track = lane,
                   .start_ns = buffer.to_ns(stamps[1]),
                   .id = ids_.next_pair++,
                   .args = args};
    out.add(wait);
    wait.phase = 'e';
    wait.start_ns = std::max(buffer.to_ns(stamps[2]), wait.start_ns + 1);
    out.add(wait);
}

// The stages of the jobs on the host; their threads are not in the buffers, so they have lanes of
// their own. Those of several jobs overlap, so they are brought into the order of time.
Result<void> TraceWriter::write_host(TraceFile& out, TraceLanes& lanes) {
    struct Entry {
        uint64_t start_ns, end_ns;
        size_t source;
        const Stage* stage;
    };
    std::vector<Entry> entries;
    for (size_t i = 0; i < sources_.size(); ++i) {
        const BufferFile& buffer = *sources_[i]->buffer;
        if (!buffer.host()) continue;
        for (const Stage& stage : stages) {
            if (!is_known(buffer, stage)) continue;
            const uint64_t start = buffer.to_ns((*buffer.host())[stage.from]);
            entries.push_back(
                {start, std::max(buffer.to_ns((*buffer.host())[stage.to]), start + 1), i, &stage});
        }
    }
    std::ranges::stable_sort(entries, {}, &Entry::start_ns);
    for (const Entry& entry : entries) {
        const BufferFile& buffer = *sources_[entry.source]->buffer;
        out.name_process(buffer.header().pid, "HOST_PROC");
        NestingLane* lane =
            lanes.of_host(buffer.header().pid).lane(host_lane(*sources_[entry.source]));
        const auto track = lane ? lane->place(entry.start_ns, entry.end_ns) : std::nullopt;
        if (!track)
            return cannot_show(buffer,
                               "its job overlaps thousands of others; put fewer buffers "
                               "into one trace");
        const std::string args = host_args(buffer);
        out.add({.name = entry.stage->name,
                 .category = "host",
                 .track = *track,
                 .start_ns = entry.start_ns,
                 .duration_ns = entry.end_ns - entry.start_ns,
                 .args = args});
        const bool is_first = entry.stage->from == 0, is_last = entry.stage->from == 6;
        if (is_first || is_last) points_[entry.source].push_back({entry.start_ns, *track});
        if (is_first) write_queue_wait(buffer, lane->track(), out);
    }
    return {};
}

// Each frame's arrow goes through the slices of its inference, joined to what the host trace has.
void TraceWriter::write_arrows(const MergedJobs& jobs, TraceFile& out) {
    std::map<uint64_t, std::vector<ArrowPoint>> arrows;
    for (size_t i = 0; i < sources_.size(); ++i)
        for (const uint64_t id : flow_ids_[i])
            arrows[id].insert(arrows[id].end(), points_[i].begin(), points_[i].end());
    for (auto& [id, points] : arrows) {
        const FrameEnds ends = jobs.flow_ids.at(id);
        std::ranges::stable_sort(points, {}, &ArrowPoint::ns);
        // The lane of post-processing has been touched already.
        if (ends.has_finish && points.size() > 1 && points.back().track == points.front().track)
            points.pop_back();
        const size_t others = size_t{ends.has_start} + size_t{ends.has_finish};
        if (points.size() + others < 2) continue;
        for (size_t k = 0; k < points.size(); ++k) {
            const bool starts = k == 0 && !ends.has_start;
            const bool finishes = k + 1 == points.size() && !ends.has_finish;
            out.add({.phase = starts     ? 's'
                              : finishes ? 'f'
                                         : 't',
                     .name = frame_arrow_name,
                     .category = frame_category,
                     .track = points[k].track,
                     .start_ns = points[k].ns,
                     .id = id});
        }
    }
}

Result<void> TraceWriter::write(const std::string& path) {
    for (const TraceSource* source : sources_)
        flow_ids_.push_back(job_args(*source->buffer, 0).flow_ids);
    points_.resize(sources_.size());
    MergedJobs merged = jobs();
    int64_t shift_ns = 0;
    if (!options_.host_trace.empty()) {
        const auto shift =
            host_clock_shift(options_.host_trace, sources_[0]->buffer->header().boot_id,
                             options_.host_clock_offset_us);
        if (!shift) return shift.error();
        shift_ns = *shift;
    }
    const auto other = other_data();
    if (!other) return other.error();
    auto out = TraceFile::create(path, *other);
    if (!out) return out.error();
    TraceLanes lanes(*out);
    if (auto r = write_host(*out, lanes); !r) return r;
    for (size_t i = 0; i < sources_.size(); ++i) {
        DeviceTrace device{*sources_[i], options_, *out, lanes, ids_};
        if (auto r = write_device(device); !r) return r;
        points_[i].insert(points_[i].end(), device.executions.begin(), device.executions.end());
    }
    if (!options_.host_trace.empty())
        if (auto r = merge_host_trace(options_.host_trace, shift_ns, merged, *out); !r) return r;
    write_arrows(merged, *out);
    return out->commit();
}

}  // namespace

Result<void> write_trace(std::span<const TraceSource> sources, const TraceOptions& options,
                         const std::string& path) {
    TraceWriter writer(sources, options);
    if (auto r = writer.check(sources); !r) return r;
    return writer.write(path);
}

}  // namespace vartml::profiling
