// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/trace_file.h"

#include <charconv>
#include <cmath>

#include "lib/trace/text.h"

namespace vartml::profiling {
void append_number(std::string& out, uint64_t value) {
    char digits[20];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void append_fixed(std::string& out, double value, int decimals) {
    if (!std::isfinite(value)) value = 0;  // our own division by zero: callers leave such out
    char digits[400];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value,
                                     std::chars_format::fixed, decimals)
                           .ptr);
}

std::string& JsonMembers::key(std::string_view name) {
    if (!first_) out_ += ',';
    first_ = false;
    append_quoted(out_, name);
    out_ += ':';
    return out_;
}

Result<TraceFile> TraceFile::create(const std::string& path, std::string_view other_data) {
    auto file = PartFile::create(path);
    if (!file) return file.error();
    file->write("{\"displayTimeUnit\":\"ns\",\"otherData\":{");
    file->write(other_data);
    file->write("},\n\"traceEvents\":[");
    return TraceFile(std::move(*file));
}

void TraceFile::add_json(std::string_view event) {
    file_.write(is_first_ ? "\n" : ",\n");
    is_first_ = false;
    file_.write(event);
}

void TraceFile::add(const FileEvent& event) {
    event_ = "{\"ph\":\"";
    event_ += event.phase;
    event_ += "\",\"name\":";
    append_quoted(event_, event.name);
    if (!event.category.empty()) {
        event_ += ",\"cat\":";
        append_quoted(event_, event.category);
    }
    event_ += ",\"pid\":";
    append_number(event_, event.track.pid);
    event_ += ",\"tid\":";
    append_number(event_, event.track.tid);
    event_ += ",\"ts\":";
    append_us(event_, event.start_ns);
    if (event.duration_ns) {
        event_ += ",\"dur\":";
        append_us(event_, *event.duration_ns);
    }
    if (event.id) {
        event_ += ",\"id\":";
        append_number(event_, *event.id);
    }
    if (event.phase == 'f') event_ += ",\"bp\":\"e\"";  // binds to the slice that it lies in
    if (event.phase == 'i') event_ += ",\"s\":\"t\"";   // an instant of its thread
    if (!event.args.empty()) {
        event_ += ",\"args\":{";
        event_ += event.args;
        event_ += '}';
    }
    event_ += '}';
    add_json(event_);
}

void TraceFile::metadata(const Track& track, std::string_view name, std::string_view args) {
    std::string text = "{\"ph\":\"M\",\"name\":\"";
    text += name;
    text += "\",\"pid\":";
    append_number(text, track.pid);
    text += ",\"tid\":";
    append_number(text, track.tid);
    text += ",\"args\":{";
    text += args;
    text += "}}";
    add_json(text);
}

void TraceFile::name_process(uint64_t pid, std::string_view name) {
    if (!named_processes_.insert(pid).second) return;
    std::string args;
    JsonMembers(args).text("name", name);
    metadata({pid, pid}, "process_name", args);
}

void TraceFile::name_thread(const Track& track, std::string_view name, uint64_t sort_index) {
    std::string args;
    JsonMembers(args).text("name", name);
    metadata(track, "thread_name", args);
    args.clear();
    JsonMembers(args).number("sort_index", sort_index);
    metadata(track, "thread_sort_index", args);
}

Result<void> TraceFile::commit() {
    file_.write("\n]}\n");
    return file_.commit();
}

NestingLane::NestingLane(LanePool& pool, Track lane, std::string name)
    : pool_(&pool), name_(std::move(name)) {
    levels_.push_back({lane, 0, {}});
}

bool NestingLane::fits(Level& level, uint64_t start_ns, uint64_t end_ns) {
    if (start_ns < level.latest_start) return false;
    level.latest_start = start_ns;
    while (!level.open.empty() && level.open.back().second <= start_ns) level.open.pop_back();
    if (level.open.empty()) return true;
    // Readers tell two slices of the same start apart by their order in the file at best.
    return level.open.back().first < start_ns && end_ns <= level.open.back().second;
}

std::optional<Track> NestingLane::place(uint64_t start_ns, uint64_t end_ns) {
    auto level = std::find_if(levels_.begin(), levels_.end(),
                              [&](Level& l) { return fits(l, start_ns, end_ns); });
    if (level == levels_.end()) {
        const auto track = pool_->create(name_ + '~' + std::to_string(levels_.size() + 1), {});
        if (!track) return std::nullopt;
        levels_.push_back({*track, start_ns, {}});
        level = levels_.end() - 1;
    }
    level->open.emplace_back(start_ns, end_ns);
    return level->track;
}

std::optional<Track> LanePool::create(const std::string& name, std::optional<uint32_t> number) {
    if (!number || !taken_.insert(*number).second) {
        while (next_ < max_lanes && !taken_.insert(next_).second) ++next_;
        if (next_ >= max_lanes) return std::nullopt;
        number = next_++;
    }
    const Track track{first_.pid, first_.tid + *number};
    file_->name_thread(track, name, order_++);
    return track;
}

NestingLane* LanePool::lane(const std::string& name, std::optional<uint32_t> number) {
    if (const auto known = lanes_.find(name); known != lanes_.end()) return &known->second;
    const auto track = create(name, number);
    if (!track) return nullptr;
    return &lanes_.try_emplace(name, *this, *track, name).first->second;
}

LanePool& TraceLanes::of_core(uint32_t device, uint16_t core) {
    const uint64_t pid = device_pid(device), first = uint64_t{core} << 12;
    return pools_.try_emplace({pid, core}, *file_, Track{pid, pid + 1 + first}, first)
        .first->second;
}

LanePool& TraceLanes::of_host(uint32_t pid) {
    const auto known = pools_.find({pid, 0});
    if (known != pools_.end()) return known->second;
    const Track first{pid, first_job_tid + hosts_++ * max_lanes};
    return pools_.try_emplace({pid, 0}, *file_, first, 0).first->second;
}

}  // namespace vartml::profiling
