// SPDX-License-Identifier: Apache-2.0
#include "lib/publish/publisher.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <thread>

#include <vartml/log.h>
#include <vartml/publish.h>

#include "lib/publish/sender.h"

namespace vartml {
namespace {

using publish::Clock;

// ours: what a thread that ends may take for its last lines
constexpr std::chrono::milliseconds grace{200};

std::string random_run() {
    uint64_t bits = 0;
    if (::getrandom(&bits, sizeof bits, 0) != sizeof bits)
        bits = static_cast<uint64_t>(Clock::now().time_since_epoch().count());
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(bits));
    return text;
}

// Signals belong to the application; a pipe without reader is an error of write() instead.
void block_signals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace

struct Publisher::State {
    std::shared_ptr<publish::RecordQueue> queue;
    std::string run;
    std::thread thread;
    std::mutex closing;  // guards `thread`; taken before the queue's lock
};

Publisher::Publisher(std::shared_ptr<State> state) : state_(std::move(state)) {}

Publisher::~Publisher() {
    close(0);
}

Result<std::unique_ptr<Publisher>> Publisher::open(std::unique_ptr<PublishSink> sink,
                                                   const PublishOptions& options,
                                                   PublishEvents events) {
    std::optional<publish::Spool> spool;
    if (!options.spool_dir.empty()) {
        auto opened = publish::Spool::open(
            options.spool_dir,
            {.max_bytes = options.spool_max_bytes, .max_age_s = options.spool_max_age_s});
        if (!opened) return opened.error();
        spool.emplace(std::move(*opened));
    }
    auto state = std::make_shared<State>();
    state->queue = std::make_shared<publish::RecordQueue>(options.queue_size);
    state->run = random_run();
    if (state->queue->wake_fd() < 0)
        return Error{ErrorCode::io, "no descriptor is left for the publisher's thread"};
    auto sender = std::make_shared<publish::Sender>(state->queue, std::move(sink), std::move(spool),
                                                    std::move(events), state->run);
    state->thread = std::thread([sender = std::move(sender), queue = state->queue]() mutable {
        pthread_setname_np(pthread_self(), "vartml-publish");
        block_signals();
        sender->run();
        sender.reset();  // the spool is free before anybody hears of the end
        queue->set_finished();
    });
    return std::unique_ptr<Publisher>(new Publisher(std::move(state)));
}

std::unique_ptr<FrameRecord> Publisher::take() {
    return state_->queue->take_empty();
}

void Publisher::put(std::unique_ptr<FrameRecord> record) {
    state_->queue->put(std::move(record));
}

void Publisher::give_back(std::unique_ptr<FrameRecord> record) {
    state_->queue->give_back(std::move(record));
}

bool Publisher::drain(unsigned timeout_ms) {
    return state_->queue->wait_drained(Clock::now() + std::chrono::milliseconds(timeout_ms));
}

void Publisher::interrupt() {
    state_->queue->interrupt();
}

void Publisher::resume() {
    state_->queue->resume();
}

void Publisher::close(unsigned timeout_ms) {
    const std::lock_guard lock(state_->closing);
    if (!state_->thread.joinable()) return;
    const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
    state_->queue->close(deadline);
    if (state_->queue->wait_finished(deadline + grace)) return state_->thread.join();
    // A name server or a disk that does not answer holds it; it ends when they do.
    log(LogLevel::warning, "",
        "the publisher's thread waits for the system and is left to end by itself");
    state_->thread.detach();
}

PublishCounts Publisher::counts() const {
    return state_->queue->counts();
}

const std::string& Publisher::run() const {
    return state_->run;
}

}  // namespace vartml

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
                gap_->epoch = lost->epoch;
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
