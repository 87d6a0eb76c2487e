// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/host/json.h"

#include <bit>
#include <charconv>
#include <cmath>

#include <vartml/version.h>

#include "lib/common/json_text.h"
#include "lib/profiling/host/lanes.h"
#include "lib/profiling/microseconds.h"

namespace vartml::profiling {
namespace {

constexpr const char* categories[] = {"gst", "queue", "host", "npu", "cpu", "frame", "meta"};

template <typename Number>
void append(std::string& out, Number number) {
    char text[32];
    const auto [end, error] = std::to_chars(text, text + sizeof text, number);
    out.append(text, end);
}

void append_frame(std::string& out, uint64_t flow_id) {
    const FrameKey key(flow_id);
    out += '"';
    append(out, key.stream());
    out += ':';
    append(out, key.number());
    out += '"';
}

}  // namespace

void TraceJson::begin(char phase) {
    out_ += events_++ ? ",\n{\"ph\":\"" : "[\n{\"ph\":\"";
    out_ += phase;
    out_ += '"';
}

void TraceJson::lane(TraceLane lane) {
    out_ += ",\"pid\":";
    append(out_, lane.pid);
    out_ += ",\"tid\":";
    append(out_, lane.tid);
}

void TraceJson::metadata(std::string_view what, uint32_t pid, uint32_t tid) {
    begin('M');
    out_ += ",\"name\":";
    append_quoted(out_, what);
    lane({pid, tid});
    out_ += ",\"args\":";
}

void TraceJson::header(const TraceHeader& h) {
    metadata("vartml_capture", h.pid, h.pid);
    JsonText json(out_);
    json.open('{');
    json.member("version", version());
    json.member("clock", "CLOCK_MONOTONIC");
    json.member("boot_id", h.boot_id);
    json.member("pid", h.pid);
    json.member("start_monotonic_ns", h.start_monotonic_ns);
    json.member("start_realtime_ns", h.start_realtime_ns);
    json.list("not_captured", h.not_captured);
    json.close('}');
    out_ += '}';
}

void TraceJson::names(uint32_t pid, uint32_t tid, const LaneName& name) {
    const auto named = [&](std::string_view what, std::string_view key, const auto& value) {
        metadata(what, pid, tid);
        JsonText json(out_);
        json.open('{');
        json.member(key, value);
        json.close('}');
        out_ += '}';
    };
    named("process_name", "name", std::string_view(name.process));
    named("thread_name", "name", std::string_view(name.thread));
    named("thread_sort_index", "sort_index", name.sort_index);
}

// False: the value is not one, nothing is written.
bool TraceJson::value(const RecordArg& arg, const char*& text) {
    const auto kind = static_cast<TraceArg::Kind>(arg.kind);
    const double number = std::bit_cast<double>(arg.value);
    if (kind == TraceArg::Kind::number && !std::isfinite(number)) return false;
    if (kind == TraceArg::Kind::frame && arg.value == FrameKey::none) return false;
    append_quoted(out_, arg.key);
    out_ += ':';
    switch (kind) {
        case TraceArg::Kind::integer:
            append(out_, static_cast<int64_t>(arg.value));
            break;
        case TraceArg::Kind::natural:
            append(out_, arg.value);
            break;
        case TraceArg::Kind::number:
            append(out_, number);
            break;
        case TraceArg::Kind::text:
            append_quoted(out_, reinterpret_cast<const char*>(arg.value));
            break;
        case TraceArg::Kind::copied:
            append_quoted(out_, {text, arg.size});
            text += arg.size;
            break;
        case TraceArg::Kind::microseconds:
            append_us(out_, arg.value);
            break;
        case TraceArg::Kind::frame:
            append_frame(out_, arg.value);
            break;
        case TraceArg::Kind::job:
            out_ += '"';
            append(out_, arg.value >> 52);
            out_ += '/';
            append(out_, arg.value >> 40 & 0xFFF);
            out_ += '/';
            append(out_, arg.value & ((uint64_t{1} << 40) - 1));
            out_ += '"';
            break;
    }
    return true;
}

void TraceJson::arguments(const RecordView& record) {
    out_ += ",\"args\":{";
    const size_t start = out_.size();
    const char* text = record.text;
    for (const RecordArg& arg : record.args) {
        if (out_.size() > start && out_.back() != ',') out_ += ',';
        value(arg, text);
    }
    const auto member = [&](const char* one, const char* many, const auto& write) {
        if (record.frames.empty()) return;
        const bool is_list = record.frames.size() > 1;
        if (out_.size() > start && out_.back() != ',') out_ += ',';
        append_quoted(out_, is_list ? many : one);
        out_ += is_list ? ":[" : ":";
        for (const RecordFrame& frame : record.frames) {
            if (&frame != record.frames.data()) out_ += ',';
            write(frame);
        }
        if (is_list) out_ += ']';
    };
    const auto has_key = [](const RecordFrame& f) { return f.flow_id != FrameKey::none; };
    const auto has_seq = [](const RecordFrame& f) { return (f.seq & seq_mask) != seq_mask; };
    const auto all = [&](const auto& has) {
        for (const RecordFrame& frame : record.frames)
            if (!has(frame)) return false;
        return true;
    };
    if (all(has_key))
        member("frame", "frames", [&](const RecordFrame& f) { append_frame(out_, f.flow_id); });
    if (all(has_seq))
        member("frameSeq", "frameSeqs",
               [&](const RecordFrame& f) { append(out_, f.seq & seq_mask); });
    if (out_.size() > start && out_.back() == ',') out_.pop_back();
    out_ += '}';
}

// At the start of the slice, behind it in the file: readers bind it to the slice that is open then.
void TraceJson::arrow(const RecordFrame& frame, const RecordHeader& header, TraceLane where) {
    constexpr char phases[] = {0, 's', 't', 'f'};
    const auto kind = static_cast<unsigned>(frame.seq >> 56);
    if (kind == 0 || kind >= sizeof phases || frame.flow_id == FrameKey::none) return;
    begin(phases[kind]);
    out_ += ",\"cat\":\"frame\",\"name\":\"frame\",\"id\":";
    append(out_, frame.flow_id);
    lane(where);
    out_ += ",\"ts\":";
    append_us(out_, header.at_ns);
    out_ += ",\"bp\":\"e\"}";
}

void TraceJson::event(const RecordView& record, TraceLane own) {
    const RecordHeader& h = *record.header;
    const TraceLane where = h.tid ? TraceLane{h.pid, h.tid} : own;
    begin(h.phase);
    out_ += ",\"cat\":\"";
    out_ += categories[h.category];
    out_ += "\",\"name\":";
    append_quoted(out_, h.name);
    lane(where);
    out_ += ",\"ts\":";
    append_us(out_, h.at_ns);
    if (h.phase == 'X') {
        out_ += ",\"dur\":";
        append_us(out_, h.extra);
    } else if (h.phase == 'i') {
        out_ += ",\"s\":\"t\"";
    } else {
        out_ += ",\"id\":";
        append(out_, h.extra);
    }
    if (h.num_args || h.num_frames) arguments(record);
    out_ += '}';
    for (const RecordFrame& frame : record.frames) arrow(frame, h, where);
}

}  // namespace vartml::profiling
