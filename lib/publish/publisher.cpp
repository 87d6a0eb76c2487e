// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <sys/random.h>

#include <csignal>
#include <cstdio>
#include <mutex>
#include <thread>

#include <vartml/log.h>
#include <vartml/publish.h>

#include "lib/publish/record_queue.h"
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
