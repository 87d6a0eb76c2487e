// SPDX-License-Identifier: Apache-2.0
// What the thread that makes records and the one that sends them share.
#pragma once
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <vartml/publish.h>

#include "lib/base/file.h"

namespace vartml::publish {

using Clock = std::chrono::steady_clock;

// Numbers of records that were dropped.
struct Gap {
    uint64_t first = 0, last = 0, count = 0, epoch = 0;
    std::string stream, model;
};

// What the sender is told beside the records.
struct Orders {
    bool closing = false;  // end at `deadline` or when all is delivered
    Clock::time_point deadline;
    bool draining = false;  // somebody waits until all is delivered
};

// A bounded queue of records; the oldest gives way. All members may be called by any thread; none
// waits for more than the lock, which is held for a few pointers.
class RecordQueue {
public:
    explicit RecordQueue(unsigned capacity);

    std::unique_ptr<FrameRecord> take_empty();
    // Numbers the record.
    void put(std::unique_ptr<FrameRecord> record);
    void give_back(std::unique_ptr<FrameRecord> record);
    // The oldest record, and what was lost before it. It counts as queued until the sender has set
    // that count anew.
    std::unique_ptr<FrameRecord> pop(std::optional<Gap>& gap);
    size_t size() const;
    size_t capacity() const { return slots_.size(); }

    // Wakes who polls this descriptor.
    int wake_fd() const { return wake_.get(); }
    void wake() const;
    void clear_wake() const;

    Orders orders() const;
    void close(Clock::time_point deadline);
    void interrupt();
    void resume();
    // False when `until` came first, or interrupt().
    bool wait_drained(Clock::time_point until);
    // The sender has nothing left; ignored when a record came meanwhile.
    void set_drained(bool drained);
    void set_finished();
    bool wait_finished(Clock::time_point until);

    // Changes and reads the counts; `queued` is filled in.
    template <typename Change>
    void count(Change&& change) {
        const std::lock_guard lock(mutex_);
        change(counts_);
    }
    PublishCounts counts() const;

private:
    mutable std::mutex mutex_;  // guards all below; nothing is taken or called while it is held
    std::condition_variable changed_;
    std::vector<std::unique_ptr<FrameRecord>> slots_;  // a ring
    size_t first_ = 0, used_ = 0;
    std::vector<std::unique_ptr<FrameRecord>> spare_;
    std::optional<Gap> gap_;  // before the oldest record
    uint64_t next_seq_ = 0;
    Orders orders_;
    PublishCounts counts_;
    bool drained_ = true, interrupted_ = false, finished_ = false;
    Fd wake_;  // never changed
};

}  // namespace vartml::publish
