// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/host_events.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <functional>
#include <istream>
#include <streambuf>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "lib/base/file.h"
#include "lib/tools/opstats/trace_file.h"
#include "lib/trace/text.h"

namespace vartml::profiling {
namespace {

using Json = nlohmann::ordered_json;

// What one event may take; a damaged file must not fill the memory.
constexpr size_t max_event_bytes = size_t{16} << 20;
constexpr size_t max_depth = 64;

class FileInput : public std::streambuf {
public:
    FileInput(const Fd& fd, const std::string& path) : fd_(fd.get()), path_(path) {}
    void mark_event() { since_event_ = 0; }
    bool is_at_end() const { return ended_; }
    const Result<void>& status() const { return status_; }

protected:
    int_type underflow() override {
        if (since_event_ > max_event_bytes && status_)
            status_ = Error{ErrorCode::bad_model, path_ + ": an event of over " +
                                                      std::to_string(max_event_bytes >> 20) +
                                                      " MiB; a host trace has small ones"};
        if (!status_) return traits_type::eof();
        ssize_t n;
        do n = ::read(fd_, block_.data(), block_.size());
        while (n < 0 && errno == EINTR);
        if (n < 0) status_ = system_error(path_, "read", errno);
        ended_ = n <= 0;
        if (ended_) return traits_type::eof();
        since_event_ += static_cast<size_t>(n);
        setg(block_.data(), block_.data(), block_.data() + n);
        return traits_type::to_int_type(block_[0]);
    }

private:
    int fd_;
    std::string path_;
    size_t since_event_ = 0;
    bool ended_ = false;
    Result<void> status_;
    std::array<char, 65536> block_;
};

// 73 years: three times together stay far below 2^63.
constexpr int64_t most_ns = int64_t{1} << 61;

// Nanoseconds of a number of microseconds, exact for what has at most three decimals: a double
// loses them where a machine has been up for months.
std::optional<int64_t> ns_of_us(std::string_view text) {
    const bool negative = text.starts_with('-');
    const std::string_view digits = text.substr(negative ? 1 : 0);
    int64_t whole = 0;
    const char* const end = digits.data() + digits.size();
    const auto [at, error] = std::from_chars(digits.data(), end, whole);
    const bool is_plain =
        error == std::errc() && (at == end || *at == '.') && whole < most_ns / 1000;
    if (!is_plain || digits.find_first_not_of("0123456789.") != digits.npos) {
        double us = 0;
        const auto parsed = std::from_chars(text.data(), text.data() + text.size(), us);
        if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return {};
        if (!(std::abs(us) < static_cast<double>(most_ns / 1000))) return {};
        return static_cast<int64_t>(std::llround(us * 1000));
    }
    int64_t ns = whole * 1000, unit = 100;
    for (const char* p = at; p != end && ++p != end && unit > 0; unit /= 10)
        ns += (*p - '0') * unit;
    return negative ? -ns : ns;
}

uint64_t number_or_zero(const Json& event, const char* key) {
    const auto at = event.find(key);
    if (at == event.end()) return 0;
    if (at->is_number_integer()) return at->get<uint64_t>();
    return 0;
}

std::string text_or_empty(const Json& object, const char* key) {
    const auto at = object.find(key);
    return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

std::string dumped(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void read_args(const Json& args, HostEvent& event) {
    if (!args.is_object()) return;
    event.job_key = text_or_empty(args, "jobKey");
    if (const auto frame = text_or_empty(args, "frame"); !frame.empty())
        event.frames.push_back(frame);
    if (const auto frames = args.find("frames"); frames != args.end() && frames->is_array())
        for (const Json& frame : *frames)
            if (frame.is_string()) event.frames.push_back(frame.get<std::string>());
    if (event.phase == 'M' && event.name == "vartml_capture")
        event.clock = HostClock{text_or_empty(args, "clock"), text_or_empty(args, "boot_id")};
}

HostEvent event_of(const Json& json, const std::string& start, const std::string& duration) {
    HostEvent event;
    const std::string phase = text_or_empty(json, "ph");
    if (phase.size() == 1) event.phase = phase[0];
    event.name = text_or_empty(json, "name");
    event.category = text_or_empty(json, "cat");
    event.pid = number_or_zero(json, "pid");
    event.tid = number_or_zero(json, "tid");
    for (const char* key : {"id", "id2"})
        if (const auto at = json.find(key); at != json.end()) event.id = dumped(*at);
    event.start_ns = ns_of_us(start);
    event.duration_ns = static_cast<uint64_t>(std::max<int64_t>(0, ns_of_us(duration).value_or(0)));
    if (const auto args = json.find("args"); args != json.end()) read_args(*args, event);
    JsonMembers members(event.members);
    for (const auto& [key, value] : json.items())
        if (key != "ts" && key != "dur") members.key(key) += dumped(value);
    return event;
}

// Builds one event at a time; what stands beside the events is skipped.
class EventReader : public nlohmann::json_sax<Json> {
public:
    EventReader(FileInput& input, const std::string& path,
                const std::function<bool(const HostEvent&)>& fn)
        : input_(input), path_(path), fn_(fn) {}

    bool null() override { return add(nullptr); }
    bool boolean(bool value) override { return add(value); }
    bool number_integer(number_integer_t value) override {
        return note_time(std::to_string(value)) && add(value);
    }
    bool number_unsigned(number_unsigned_t value) override {
        return note_time(std::to_string(value)) && add(value);
    }
    bool number_float(number_float_t value, const string_t& text) override {
        return note_time(text) && add(value);
    }
    bool string(string_t& value) override { return note_time(value) && add(value); }
    bool binary(binary_t&) override { return false; }
    bool key(string_t& name) override {
        key_ = name;
        return true;
    }
    bool start_object(size_t) override { return open(Json::object()); }
    bool start_array(size_t) override { return open(Json::array()); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool parse_error(size_t position, const std::string& token,
                     const nlohmann::detail::exception&) override {
        // A file may be cut off anywhere; an event that is not whole is left out. Some writers end
        // the list with a comma.
        const bool is_end_of_list = in_events() && depth_ == events_depth_ && token.ends_with(']');
        if (!input_.is_at_end() && !is_end_of_list) error_at_ = position;
        return false;
    }

    Result<void> result() const {
        if (!input_.status()) return input_.status();
        const std::string what = ": is no trace in JSON: ";
        if (too_deep_)
            return Error{ErrorCode::bad_model, path_ + ": an event is nested over " +
                                                   std::to_string(max_depth) + " levels deep"};
        if (error_at_)
            return Error{ErrorCode::bad_model,
                         path_ + what + "malformed at byte " + std::to_string(*error_at_)};
        if (!saw_events_ && !stopped_)
            return Error{ErrorCode::bad_model,
                         path_ + what + "it has neither an array of events nor traceEvents"};
        return {};
    }

private:
    bool note_time(const std::string& text) {
        if (stack_.size() != 1) return true;
        if (key_ == "ts") start_ = text;
        if (key_ == "dur") duration_ = text;
        return true;
    }

    bool in_events() const { return events_depth_ != 0; }

    bool open(Json value) {
        ++depth_;
        if (!in_events()) {
            const bool is_list =
                value.is_array() && (depth_ == 1 || (depth_ == 2 && key_ == "traceEvents"));
            if (is_list) {
                events_depth_ = depth_;
                saw_events_ = true;
            }
            return true;
        }
        if (stack_.empty()) {
            event_ = std::move(value);
            start_.clear();
            duration_.clear();
            stack_.push_back(&event_);
            return true;
        }
        too_deep_ = stack_.size() >= max_depth;
        if (too_deep_) return false;
        stack_.push_back(&put(std::move(value)));
        return true;
    }

    bool close() {
        --depth_;
        if (!in_events()) return true;
        if (stack_.empty()) {  // the list of events itself
            events_depth_ = 0;
            return true;
        }
        stack_.pop_back();
        if (!stack_.empty()) return true;
        input_.mark_event();
        if (!event_.is_object()) return true;
        stopped_ = !fn_(event_of(event_, start_, duration_));
        return !stopped_;
    }

    template <typename T>
    bool add(T&& value) {
        if (!stack_.empty()) put(Json(std::forward<T>(value)));
        if (!in_events()) input_.mark_event();
        return true;
    }

    Json& put(Json value) {
        Json& parent = *stack_.back();
        if (parent.is_array()) {
            parent.push_back(std::move(value));
            return parent.back();
        }
        return parent[key_] = std::move(value);
    }

    FileInput& input_;
    const std::string& path_;
    const std::function<bool(const HostEvent&)>& fn_;
    size_t depth_ = 0, events_depth_ = 0;
    std::string key_, start_, duration_;
    Json event_;
    std::vector<Json*> stack_;
    bool saw_events_ = false, stopped_ = false, too_deep_ = false;
    std::optional<size_t> error_at_;
};

}  // namespace

std::string HostEvent::json(int64_t offset_ns) const {
    std::string out = "{" + members;
    if (start_ns) {
        out += members.empty() ? "\"ts\":" : ",\"ts\":";
        append_us(out, *start_ns + offset_ns);
    }
    if (phase == 'X') {
        out += ",\"dur\":";
        append_us(out, std::max<uint64_t>(duration_ns, 1));
    }
    return out + '}';
}

Result<void> for_each_host_event(const std::string& path,
                                 const std::function<bool(const HostEvent&)>& fn) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return system_error(path, "open", errno);
    FileInput input(fd, path);
    std::istream stream(&input);
    EventReader reader(input, path, fn);
    Json::sax_parse(stream, &reader, Json::input_format_t::json, false);
    return reader.result();
}

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
