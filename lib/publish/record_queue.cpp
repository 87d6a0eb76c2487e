// SPDX-License-Identifier: Apache-2.0
#include "lib/publish/record_queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

namespace vartml::publish {

RecordQueue::RecordQueue(unsigned capacity)
    : slots_(std::max(capacity, 1u)), wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

std::unique_ptr<FrameRecord> RecordQueue::take_empty() {
    {
        const std::lock_guard lock(mutex_);
        if (!spare_.empty()) {
            auto record = std::move(spare_.back());
            spare_.pop_back();
            return record;
        }
    }
    return std::make_unique<FrameRecord>();
}

void RecordQueue::give_back(std::unique_ptr<FrameRecord> record) {
    record->clear();
    const std::lock_guard lock(mutex_);
    if (spare_.size() <= slots_.size()) spare_.push_back(std::move(record));
}

void RecordQueue::put(std::unique_ptr<FrameRecord> record) {
    std::unique_ptr<FrameRecord> lost;
    {
        const std::lock_guard lock(mutex_);
        record->seq = next_seq_++;
        drained_ = false;
        if (used_ == slots_.size()) {
            lost = std::move(slots_[first_]);
            first_ = (first_ + 1) % slots_.size();
            --used_;
            ++counts_.dropped;
            if (!gap_) {
                gap_.emplace();
                gap_->first = lost->seq;
                gap_->stream = lost->stream;
                if (lost->num_inferences) gap_->model = lost->inferences[0].model;
            }
            gap_->last = lost->seq;
            ++gap_->count;
        }
        slots_[(first_ + used_) % slots_.size()] = std::move(record);
        ++used_;
    }
    wake();
    if (lost) give_back(std::move(lost));
}

std::unique_ptr<FrameRecord> RecordQueue::pop(std::optional<Gap>& gap) {
    const std::lock_guard lock(mutex_);
    gap.reset();
    if (used_ == 0) return nullptr;
    gap = std::exchange(gap_, std::nullopt);
    auto record = std::move(slots_[first_]);
    first_ = (first_ + 1) % slots_.size();
    --used_;
    ++counts_.queued;
    return record;
}

size_t RecordQueue::size() const {
    const std::lock_guard lock(mutex_);
    return used_;
}

void RecordQueue::wake() const {
    const uint64_t one = 1;
    // It fails only when it is readable already.
    [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
}

void RecordQueue::clear_wake() const {
    uint64_t count;
    [[maybe_unused]] const ssize_t n = ::read(wake_.get(), &count, sizeof count);
}

Orders RecordQueue::orders() const {
    const std::lock_guard lock(mutex_);
    return orders_;
}

void RecordQueue::close(Clock::time_point deadline) {
    {
        const std::lock_guard lock(mutex_);
        orders_.closing = true;
        orders_.deadline = deadline;
    }
    wake();
}

void RecordQueue::interrupt() {
    {
        const std::lock_guard lock(mutex_);
        interrupted_ = true;
    }
    changed_.notify_all();
}

void RecordQueue::resume() {
    const std::lock_guard lock(mutex_);
    interrupted_ = false;
}

bool RecordQueue::wait_drained(Clock::time_point until) {
    std::unique_lock lock(mutex_);
    if (drained_) return true;
    orders_.draining = true;
    lock.unlock();
    wake();
    lock.lock();
    changed_.wait_until(lock, until, [&] { return drained_ || interrupted_ || finished_; });
    orders_.draining = false;
    return drained_;
}

void RecordQueue::set_drained(bool drained) {
    {
        const std::lock_guard lock(mutex_);
        if (drained_ == (drained && used_ == 0)) return;
        drained_ = drained && used_ == 0;
    }
    changed_.notify_all();
}

void RecordQueue::set_finished() {
    {
        const std::lock_guard lock(mutex_);
        finished_ = true;
    }
    changed_.notify_all();
}

bool RecordQueue::wait_finished(Clock::time_point until) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, until, [&] { return finished_; });
}

PublishCounts RecordQueue::counts() const {
    const std::lock_guard lock(mutex_);
    PublishCounts counts = counts_;
    counts.queued += used_;
    return counts;
}

}  // namespace vartml::publish
