// SPDX-License-Identifier: Apache-2.0
// The thread that takes events out of all rings and writes the file.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <vartml/profile.h>

#include "lib/base/file.h"
#include "lib/trace/ring.h"

namespace vartml::profiling {

// Writes an event into memory as a record.

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

// Events as JSON, each on a line of its own.

struct LaneName;

struct TraceHeader {
    std::string boot_id;
    uint32_t pid = 0;
    uint64_t start_monotonic_ns = 0, start_realtime_ns = 0;
    std::vector<std::string> not_captured;
};

// Events are appended with the comma that parts them from what is before.
class TraceJson {
public:
    explicit TraceJson(std::string& out) : out_(out) {}

    // Opens the array.
    void header(const TraceHeader& header);
    // The lane's and its process's name.
    void names(uint32_t pid, uint32_t tid, const LaneName& name);
    // An event, and the arrows of its frames behind it. Fields of the lane that are 0 are `own`'s.
    void event(const RecordView& record, TraceLane own);
    // Closes the array.
    void end() { out_ += "\n]\n"; }

    uint64_t events() const { return events_; }

private:
    void begin(char phase);
    void metadata(std::string_view what, uint32_t pid, uint32_t tid);
    void lane(TraceLane lane);
    void arguments(const RecordView& record);
    bool value(const RecordArg& arg, const char*& text);
    void arrow(const RecordFrame& frame, const RecordHeader& header, TraceLane lane);

    std::string& out_;
    uint64_t events_ = 0;
};

// Thread-safety: all members may be called concurrently, but for finish().
class TraceWriter {
public:
    // Creates the file and starts the thread. `when_full` is called once, on that thread, when
    // recording must stop. Errors: those of creating the file.
    static Result<std::unique_ptr<TraceWriter>> create(const std::string& path,
                                                       const HostTraceOptions& options,
                                                       void (*when_full)());
    ~TraceWriter();

    const std::string& path() const { return path_; }
    // A ring for the calling thread.
    std::shared_ptr<TraceRing> add_ring();
    // What is in the rings now is in the file afterwards.
    void flush();
    // Writes the rest, ends the file, joins the thread; once.
    void finish();
    HostTraceTotals totals() const;

private:
    TraceWriter(std::string path, const HostTraceOptions& options, Fd file, void (*when_full)());
    void work();
    void drain();
    void drain(TraceRing& ring);
    void take(const RecordView& record, TraceLane own);
    void name_thread(const TraceRing& ring);
    void note(TraceText name, TraceLane lane, std::initializer_list<TraceArg> args);
    void put();
    size_t keep_whole_events(size_t written);
    void stop(TraceText why);

    const std::string path_;
    const uint64_t max_bytes_;
    const size_t ring_bytes_;
    const uint32_t pid_;
    void (*const when_full_)();
    const std::shared_ptr<Doorbell> doorbell_ = std::make_shared<Doorbell>();

    mutable std::mutex mutex_;  // guards rings_ and num_rings_; a leaf
    std::vector<std::shared_ptr<TraceRing>> rings_;
    uint32_t num_rings_ = 0;

    // the thread's
    Fd file_;
    std::string text_;
    TraceJson json_{text_};
    std::set<std::pair<uint32_t, uint32_t>> named_;
    std::vector<std::shared_ptr<TraceRing>> draining_;
    std::vector<uint64_t> told_lost_;  // by ordinal
    uint64_t left_out_ = 0;            // events that the file did not take

    std::atomic<uint64_t> passes_{0}, written_{0}, bytes_{0}, lost_of_ended_{0};
    std::atomic<bool> stops_{false}, is_full_{false};
    std::thread thread_;
};

}  // namespace vartml::profiling
