// SPDX-License-Identifier: Apache-2.0
#include "lib/run/exec/executor.h"

#include <pthread.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <map>

#include "lib/run/exec/device.h"
#include "lib/run/exec/shared_run.h"

namespace vartml::device {
namespace {

// While it lives, floats are rounded to nearest, subnormal numbers count and nothing traps,
// whatever the application has set for its thread: results are the same on every thread.
class PlainFloats {
public:
    PlainFloats() : before_(control()) {
        if (before_ != plain) set_control(plain);
    }
    ~PlainFloats() {
        if (before_ != plain) set_control(before_);
    }
    PlainFloats(const PlainFloats&) = delete;
    PlainFloats& operator=(const PlainFloats&) = delete;

private:
#if defined(__x86_64__)
    static constexpr unsigned plain = 0x1f80;                    // given: MXCSR after a reset
    static unsigned control() { return _mm_getcsr() & ~0x3fu; }  // without what has happened
    static void set_control(unsigned control) { _mm_setcsr(control | (_mm_getcsr() & 0x3fu)); }
#elif defined(__aarch64__)
    static constexpr unsigned plain = 0;  // given: FPCR after a reset
    static unsigned control() { return __builtin_aarch64_get_fpcr(); }
    static void set_control(unsigned control) { __builtin_aarch64_set_fpcr(control); }
#else
    static constexpr unsigned plain = 0;
    static unsigned control() { return plain; }
    static void set_control(unsigned) {}
#endif
    const unsigned before_;
};

struct Registry {
    std::mutex mutex;
    std::map<const Device*, std::weak_ptr<Executor>> executors;  // guarded by mutex
};

Registry& registry() {
    static Registry* const instance = new Registry;
    return *instance;
}

std::atomic<unsigned> process{0};  // rises in each fork

// A fork finds the registry free, and is another process from its first instruction on.
unsigned this_process() {
    static const bool is_told = [] {
        (void)pthread_atfork([] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); },
                             [] {
                                 process.fetch_add(1, std::memory_order_relaxed);
                                 registry().mutex.unlock();
                             });
        return true;
    }();
    (void)is_told;
    return process.load(std::memory_order_relaxed);
}

// The task that this thread is inside.
struct Inside {
    Executor* executor = nullptr;
    unsigned slot = 0;
};
thread_local Inside inside;

}  // namespace

std::shared_ptr<Executor> Executor::of(Device& device) {
    const std::lock_guard lock(registry().mutex);
    auto& entry = registry().executors[&device];
    auto executor = entry.lock();
    if (!executor || executor->is_of_another_process()) {
        executor = std::make_shared<Executor>(device.name(), device.num_cores());
        entry = executor;
    }
    return executor;
}

Executor::Executor(const std::string& name, unsigned num_threads) : process_(this_process()) {
    num_threads = std::clamp(num_threads, 1U, max_threads);
    free_slots_ = num_threads == 64 ? ~uint64_t{0} : (uint64_t{1} << num_threads) - 1;
    threads_.reserve(num_threads);
    try {
        // Threads read threads_.size(); they start once it stands.
        const std::lock_guard lock(mutex_);
        for (unsigned i = 0; i < num_threads; ++i)
            threads_.emplace_back([this, i, title = name + "-" + std::to_string(i)] {
                {
                    const std::lock_guard wait(mutex_);
                }
                name_this_thread(title.c_str());
                work(i);
            });
    } catch (...) {  // no memory, or too many threads: those that run must end first
        end();
        throw;
    }
}

Executor::~Executor() {
    end();
}

bool Executor::is_of_another_process() const {
    return process_ != process.load(std::memory_order_relaxed);
}

void Executor::end() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
        news_.fetch_add(1);
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

// ---- tasks ------------------------------------------------------------------------------------

void Executor::submit(Task& task) {
    task.next_ = nullptr;
    {
        const std::lock_guard lock(mutex_);
        (first_ ? last_->next_ : first_) = &task;
        last_ = &task;
        queued_.fetch_add(1, std::memory_order_relaxed);
    }
    announce(1);
}

bool Executor::try_run(Task& task) {
    unsigned slot;
    {
        const std::lock_guard lock(mutex_);
        if (first_ || free_slots_ == 0) return false;
        slot = static_cast<unsigned>(std::countr_zero(free_slots_));
        free_slots_ &= free_slots_ - 1;
    }
    run_in_slot(task, slot);
    return true;
}

void Executor::call(const std::function<void()>& work) {
    struct Call final : Task {
        explicit Call(const std::function<void()>& function) : work(function) {}
        void run(unsigned) noexcept override {
            work();
            const std::lock_guard lock(mutex);
            is_done = true;
            cv.notify_all();
        }
        const std::function<void()>& work;
        std::mutex mutex;
        std::condition_variable cv;
        bool is_done = false;
    } task(work);
    submit(task);
    std::unique_lock lock(task.mutex);
    task.cv.wait(lock, [&task] { return task.is_done; });
}

Executor::Task* Executor::take(unsigned& slot) {
    if (!first_ || free_slots_ == 0) return nullptr;
    Task* const task = first_;
    first_ = task->next_;
    queued_.fetch_sub(1, std::memory_order_relaxed);
    slot = static_cast<unsigned>(std::countr_zero(free_slots_));
    free_slots_ &= free_slots_ - 1;
    return task;
}

void Executor::run_in_slot(Task& task, unsigned slot) {
    const Inside before = inside;
    inside = {this, slot};
    active_.fetch_add(1);
    {
        const PlainFloats floats;
        task.run(slot);
    }
    active_.fetch_sub(1);
    inside = before;
    bool waiting;
    {
        const std::lock_guard lock(mutex_);
        free_slots_ |= uint64_t{1} << slot;
        waiting = first_ != nullptr;
    }
    if (waiting) announce(1);
}

// ---- help -------------------------------------------------------------------------------------

Executor* Executor::current() {
    return inside.executor;
}

Executor::Waiting::Waiting() : executor_(inside.executor) {
    if (executor_) executor_->active_.fetch_sub(1);
}

Executor::Waiting::~Waiting() {
    if (executor_) executor_->active_.fetch_add(1);
}

void Executor::offer(SharedRun& run, unsigned helpers) {
    Offer& offer = offers_[inside.slot];
    offer.helpers.store(helpers, std::memory_order_relaxed);
    offer.run.store(&run);
    const unsigned busy = active_.load(std::memory_order_relaxed), all = num_threads();
    if (busy < all) announce(std::min(helpers, all - busy));
}

void Executor::withdraw() {
    offers_[inside.slot].run.store(nullptr);
}

void Executor::forget(const SharedRun& run) const {
    for (size_t i = 0; i < threads_.size(); ++i)
        while (helpers_[i].inside.load() == &run) std::this_thread::yield();
}

bool Executor::help(unsigned thread) {
    for (size_t i = 0; i < threads_.size(); ++i) {
        Offer& offer = offers_[i];
        if (!offer.run.load(std::memory_order_relaxed)) continue;
        bool helped = false;
        if (active_.fetch_add(1) < threads_.size()) {
            const unsigned seat = offer.seats.fetch_add(1);
            SharedRun* const run = offer.run.load();
            if (run && seat < offer.helpers.load(std::memory_order_relaxed)) {
                // Tells first, then looks again: from here on forget() waits for this thread.
                helpers_[thread].inside.store(run);
                if (offer.run.load() == run) {
                    run->help(seat + 1, thread, *this);
                    helped = true;
                }
                helpers_[thread].inside.store(nullptr);
            }
            offer.seats.fetch_sub(1);
        }
        active_.fetch_sub(1);
        if (helped) return true;
    }
    return false;
}

// ---- threads ----------------------------------------------------------------------------------

// Wakes sleepers where fewer than `wanted` threads are looking for work already.
void Executor::announce(unsigned wanted) {
    news_.fetch_add(1);
    if (sleeping_.load() == 0) return;
    const unsigned looking = spinning_.load();
    if (looking >= wanted) return;
    {
        const std::lock_guard lock(mutex_);
    }  // nobody is between its last look and its sleep
    if (wanted - looking == 1)
        wake_.notify_one();
    else
        wake_.notify_all();
}

void Executor::sleep(uint64_t seen) {
    std::unique_lock lock(mutex_);
    sleeping_.fetch_add(1);
    wake_.wait(lock, [&] { return news_.load() != seen; });
    sleeping_.fetch_sub(1);
}

bool Executor::run_next() {
    Task* task;
    unsigned slot = 0;
    bool more;
    {
        const std::lock_guard lock(mutex_);
        task = take(slot);
        more = first_ && free_slots_ != 0;
    }
    // Who submitted it may have counted on this thread, which looked but is busy now.
    if (more) announce(1);
    if (task) run_in_slot(*task, slot);
    return task != nullptr;
}

void Executor::work(unsigned thread) {
    const PlainFloats floats;  // of who made the thread
    for (;;) {
        const uint64_t seen = news_.load();
        if (queued_.load(std::memory_order_relaxed) > 0 && run_next()) continue;
        if (help(thread)) continue;
        {
            const std::lock_guard lock(mutex_);
            if (stop_ && !first_) return;
        }
        spinning_.fetch_add(1);
        const bool news = spin_for_a_moment([&] { return news_.load() != seen; });
        spinning_.fetch_sub(1);
        if (!news) sleep(seen);
    }
}

void name_this_thread(const char* name) {
    char short_name[16] = {};
    for (size_t i = 0; i + 1 < sizeof short_name && name[i]; ++i) short_name[i] = name[i];
    pthread_setname_np(pthread_self(), short_name);
}

}  // namespace vartml::device
