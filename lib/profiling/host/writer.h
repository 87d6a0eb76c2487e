// SPDX-License-Identifier: Apache-2.0
// The thread that takes events out of all rings and writes the file.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <vartml/profile.h>

#include "lib/common/file.h"
#include "lib/profiling/host/json.h"
#include "lib/profiling/host/ring.h"

namespace vartml::profiling {

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
