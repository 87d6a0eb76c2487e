// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/trace/host_events.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <istream>
#include <nlohmann/json.hpp>
#include <streambuf>

#include "lib/common/file.h"
#include "lib/profiling/microseconds.h"
#include "lib/profiling/trace/trace_file.h"

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

}  // namespace vartml::profiling
