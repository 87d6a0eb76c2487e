// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/trace/host_merge.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "lib/profiling/trace/host_events.h"
#include "lib/profiling/trace/lane_pool.h"

namespace vartml::profiling {
namespace {

constexpr const char* own_clock = "CLOCK_MONOTONIC";
constexpr unsigned frame_bits = 40;
constexpr double most_offset_us = 2e15;  // 63 years, as the times of events

// Begun and not yet ended; losses in the host trace must not fill the memory.
constexpr size_t max_open = 65536;

std::string hex_of(const std::array<uint8_t, 16>& id) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (const uint8_t byte : id) text += {digits[byte >> 4], digits[byte & 15]};
    return text;
}

std::string hex_digits(const std::string& uuid) {
    std::string text;
    for (const char c : uuid)
        if (c != '-') text += static_cast<char>(c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c);
    return text;
}

// Events that begin and end apart: kept together or not at all.
struct OpenEvent {
    std::string json;
    int64_t start_ns = 0;
    bool wanted = false;  // by its key
    bool written = false;
    bool covered = false;  // a buffer has it
    uint64_t order = 0;
};

class Merge {
public:
    Merge(int64_t shift_ns, MergedJobs& jobs, TraceFile& out)
        : shift_ns_(shift_ns), jobs_(jobs), out_(out) {
        for (const auto& [id, ends] : jobs.flow_ids) frames_.insert(frame_text(id));
    }
    void take(const HostEvent& event);
    void finish();

private:
    bool overlaps(int64_t start_ns, int64_t end_ns) const {
        return start_ns <= static_cast<int64_t>(jobs_.end_ns) &&
               end_ns >= static_cast<int64_t>(jobs_.begin_ns);
    }
    bool has_key(const HostEvent& event) const {
        return std::ranges::any_of(event.frames,
                                   [&](const auto& f) { return frames_.contains(f); });
    }
    bool is_covered(const HostEvent& event) const {
        constexpr std::string_view by_buffers[] = {"npu", "cpu", "host", "queue"};
        return jobs_.job_keys.contains(event.job_key) &&
               std::ranges::find(by_buffers, event.category) != std::end(by_buffers);
    }
    int64_t at(const HostEvent& event) const { return event.start_ns.value_or(0) + shift_ns_; }
    void write(const HostEvent& event) { out_.add_json(event.json(shift_ns_)); }

    void take_slice(const HostEvent& event);
    void take_frame_arrow(const HostEvent& event);
    void take_begin(const HostEvent& event);
    void take_end(const HostEvent& event);
    void take_async(const HostEvent& event);
    void take_flow(const HostEvent& event);
    OpenEvent opened(const HostEvent& event) {
        return {event.json(shift_ns_), at(event), has_key(event), false,
                is_covered(event),     order_++};
    }
    void make_room();

    const int64_t shift_ns_;
    MergedJobs& jobs_;
    TraceFile& out_;
    std::set<std::string> frames_;
    std::map<std::pair<uint64_t, uint64_t>, std::pair<int64_t, int64_t>> left_out_;  // per lane
    std::map<std::pair<uint64_t, uint64_t>, std::vector<OpenEvent>> stacks_;         // of B
    std::map<std::string, std::vector<OpenEvent>> open_;                             // of b and s
    uint64_t order_ = 0;
};

void Merge::take_slice(const HostEvent& event) {
    const int64_t end = at(event) + static_cast<int64_t>(event.duration_ns);
    if (is_covered(event))
        left_out_[{event.pid, event.tid}] = {at(event), end};
    else if (has_key(event) || overlaps(at(event), end))
        write(event);
}

// Those on lanes and slices that buffers give come from the buffers as well.
void Merge::take_frame_arrow(const HostEvent& event) {
    uint64_t id = 0;
    for (const char c : event.id)
        if (c >= '0' && c <= '9') id = id * 10 + static_cast<uint64_t>(c - '0');
    const auto frame = jobs_.flow_ids.find(id);
    if (frame == jobs_.flow_ids.end() || event.pid >= first_device_pid) return;
    const auto gone = left_out_.find({event.pid, event.tid});
    if (gone != left_out_.end() && at(event) >= gone->second.first &&
        at(event) <= gone->second.second)
        return;
    frame->second.has_start |= event.phase == 's';
    frame->second.has_finish |= event.phase == 'f';
    write(event);
}

void Merge::take_begin(const HostEvent& event) {
    stacks_[{event.pid, event.tid}].push_back(opened(event));
    make_room();
}

void Merge::take_end(const HostEvent& event) {
    const auto found = stacks_.find({event.pid, event.tid});
    if (found == stacks_.end() || found->second.empty()) return;
    auto& stack = found->second;
    OpenEvent& begin = stack.back();
    if (!begin.covered && (begin.wanted || begin.written || overlaps(begin.start_ns, at(event)))) {
        // What encloses it overlaps as well, and must be in the file before it.
        for (OpenEvent& outer : stack)
            if (!outer.covered && !std::exchange(outer.written, true)) out_.add_json(outer.json);
        write(event);
    }
    stack.pop_back();
    if (stack.empty()) stacks_.erase(found);
}

// b, n and e of one pair, and s, t and f of one arrow, have one key.
std::string key_of(const HostEvent& event) {
    const bool is_flow = event.phase == 's' || event.phase == 't' || event.phase == 'f';
    return (is_flow ? std::string("flow") : std::to_string(event.pid)) + '\n' + event.category +
           '\n' + event.id + '\n' + event.name;
}

void Merge::take_async(const HostEvent& event) {
    auto& pairs = open_[key_of(event)];
    if (event.phase == 'b') {
        pairs.push_back(opened(event));
        make_room();
        return;
    }
    if (!pairs.empty()) {
        const OpenEvent& begin = pairs.back();
        const bool keep = begin.wanted || has_key(event) || overlaps(begin.start_ns, at(event));
        if (keep && !begin.covered) {
            out_.add_json(begin.json);
            write(event);
        }
        pairs.pop_back();
    }
    if (pairs.empty()) open_.erase(key_of(event));
}

// An arrow is kept where all of it lies in the inference.
void Merge::take_flow(const HostEvent& event) {
    auto& steps = open_[key_of(event)];
    const bool is_in = overlaps(at(event), at(event));
    if (event.phase == 's') steps.clear();
    const bool goes_on = is_in && (event.phase == 's' || !steps.empty());
    if (goes_on) steps.push_back(opened(event));
    if (goes_on && event.phase == 'f')
        for (const OpenEvent& step : steps) out_.add_json(step.json);
    if (!goes_on || event.phase == 'f') open_.erase(key_of(event));
    make_room();
}

void Merge::take(const HostEvent& event) {
    if (event.phase == 'M') return write(event);
    if (!event.start_ns) return;
    const bool is_flow = event.phase == 's' || event.phase == 't' || event.phase == 'f';
    if (is_flow && event.category == frame_category) return take_frame_arrow(event);
    if (is_flow) return take_flow(event);
    switch (event.phase) {
        case 'X':
            return take_slice(event);
        case 'B':
            return take_begin(event);
        case 'E':
            return take_end(event);
        case 'b':
        case 'e':
            return take_async(event);
        default:
            break;
    }
    if (!is_covered(event) && (has_key(event) || overlaps(at(event), at(event)))) write(event);
}

// The older half goes.
void Merge::make_room() {
    if (order_ % 1024 != 0) return;
    size_t count = 0;
    for (const auto& [key, list] : stacks_) count += list.size();
    for (const auto& [key, list] : open_) count += list.size();
    if (count <= max_open) return;
    const auto is_old = [&](const OpenEvent& e) { return e.order + max_open / 2 < order_; };
    const auto thin = [&](auto& lists) {
        for (auto& [key, list] : lists) std::erase_if(list, is_old);
        std::erase_if(lists, [](const auto& entry) { return entry.second.empty(); });
    };
    thin(stacks_);
    thin(open_);
}

// What the file does not end, it was cut off in.
void Merge::finish() {
    const auto write_open = [&](const OpenEvent& e) {
        if (!e.written && !e.covered && (e.wanted || overlaps(e.start_ns, e.start_ns)))
            out_.add_json(e.json);
    };
    for (const auto& [lane, stack] : stacks_) std::ranges::for_each(stack, write_open);
    for (const auto& [key, pairs] : open_)
        if (!key.starts_with("flow\n")) std::ranges::for_each(pairs, write_open);
}

}  // namespace

std::string frame_text(uint64_t flow_id) {
    return std::to_string(flow_id >> frame_bits) + ':' +
           std::to_string(flow_id & ((uint64_t{1} << frame_bits) - 1));
}

Result<int64_t> host_clock_shift(const std::string& path, const std::array<uint8_t, 16>& boot_id,
                                 std::optional<double> offset_us) {
    std::optional<HostClock> clock;
    const auto read = for_each_host_event(path, [&](const HostEvent& event) {
        if (event.clock) clock = event.clock;
        return event.phase == 'M' && !clock;
    });
    if (!read) return read.error();
    if (!clock || clock->clock.empty()) {
        if (!offset_us)
            return Error{ErrorCode::invalid_argument,
                         path +
                             ": names no clock; --host-clock-offset-us says what to add to its "
                             "times to get CLOCK_MONOTONIC"};
        if (!(std::abs(*offset_us) < most_offset_us))
            return Error{ErrorCode::invalid_argument,
                         "--host-clock-offset-us: is not a number of microseconds below 2e15"};
        return static_cast<int64_t>(std::llround(*offset_us * 1000));
    }
    if (offset_us)
        return Error{ErrorCode::invalid_argument,
                     path + ": names its clock, " + clock->clock +
                         "; --host-clock-offset-us is only for a host trace that names none"};
    if (clock->clock != own_clock)
        return Error{ErrorCode::unsupported, path + ": its clock is " + clock->clock +
                                                 ", that of the buffers is " + own_clock};
    if (hex_digits(clock->boot_id) != hex_of(boot_id))
        return Error{ErrorCode::unsupported, path + ": is of another boot, boot_id " +
                                                 hex_digits(clock->boot_id) +
                                                 ", than the buffers, " + hex_of(boot_id) +
                                                 "; their clocks have nothing in common"};
    return int64_t{0};
}

Result<void> merge_host_trace(const std::string& path, int64_t shift_ns, MergedJobs& jobs,
                              TraceFile& out) {
    Merge merge(shift_ns, jobs, out);
    const auto read = for_each_host_event(path, [&](const HostEvent& event) {
        merge.take(event);
        return true;
    });
    if (read) merge.finish();
    return read;
}

}  // namespace vartml::profiling
