// SPDX-License-Identifier: Apache-2.0
// Writes an event into memory as a record.
#pragma once
#include <algorithm>
#include <cstring>

#include "lib/profiling/host/record.h"

namespace vartml::profiling {

inline std::span<const TraceArg> args_of(const TraceEvent& e) {
    return e.args.first(std::min(e.args.size(), max_record_args));
}
inline std::span<const TraceFrame> frames_of(const TraceEvent& e) {
    return e.frames.first(std::min(e.frames.size(), max_record_frames));
}

// Bytes of the event's record.
inline size_t record_bytes(const TraceEvent& event) {
    const auto args = args_of(event);
    size_t text = 0;
    for (const TraceArg& arg : args) text += arg.kind == TraceArg::Kind::copied ? arg.size : 0;
    return sizeof(RecordHeader) + args.size() * sizeof(RecordArg) +
           frames_of(event).size() * sizeof(RecordFrame) + (text + 7) / 8 * 8;
}

// `to` has `size` = record_bytes(event) bytes, aligned to 8.
inline void build_record(std::byte* to, size_t size, char phase, const TraceEvent& event,
                         uint64_t at_ns, uint64_t extra) {
    const auto args = args_of(event);
    const auto frames = frames_of(event);
    RecordHeader header;
    header.size = static_cast<uint32_t>(size);
    header.phase = phase;
    header.category = static_cast<uint8_t>(event.category);
    header.num_args = static_cast<uint8_t>(args.size());
    header.num_frames = static_cast<uint8_t>(frames.size());
    header.name = event.name.c_str();
    header.at_ns = at_ns;
    header.extra = extra;
    header.pid = event.lane.pid;
    header.tid = event.lane.tid;
    const auto put = [&](const void* from, size_t bytes) {
        std::memcpy(to, from, bytes);
        to += bytes;
    };
    put(&header, sizeof header);
    for (const TraceArg& arg : args) {
        const RecordArg one{arg.key.c_str(), arg.value, static_cast<uint32_t>(arg.kind), arg.size};
        put(&one, sizeof one);
    }
    for (size_t i = 0; i < frames.size(); ++i) {
        const uint64_t arrow = event.arrows ? static_cast<uint64_t>(event.arrows[i]) : 0;
        const RecordFrame one{frames[i].key.flow_id,
                              (frames[i].frame_seq & seq_mask) | arrow << 56};
        put(&one, sizeof one);
    }
    for (const TraceArg& arg : args)
        if (arg.kind == TraceArg::Kind::copied)
            put(reinterpret_cast<const void*>(arg.value), arg.size);
}

}  // namespace vartml::profiling
