// SPDX-License-Identifier: Apache-2.0
#include "lib/runtime/executor.h"

#include <pthread.h>

#include <map>

namespace vartml::runtime {
namespace {

struct Registry {
    std::mutex mutex;
    std::map<const device::Device*, std::weak_ptr<Executor>> executors;  // guarded by mutex
};

}  // namespace

std::shared_ptr<Executor> Executor::of(device::Device& device) {
    static Registry* const registry = new Registry;
    const std::lock_guard lock(registry->mutex);
    auto& entry = registry->executors[&device];
    auto executor = entry.lock();
    if (!executor) {
        executor = std::make_shared<Executor>(device.name(), device.num_cores());
        entry = executor;
    }
    return executor;
}

Executor::Executor(const std::string& name, unsigned num_threads) {
    threads_.reserve(num_threads);
    for (unsigned i = 0; i < num_threads; ++i)
        threads_.emplace_back([this, i, title = name + "-" + std::to_string(i)] {
            name_this_thread(title.c_str());
            work(i);
        });
}

Executor::~Executor() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void Executor::submit(Task& task) {
    task.next_ = nullptr;
    bool wake;
    {
        const std::lock_guard lock(mutex_);
        (first_ ? last_->next_ : first_) = &task;
        last_ = &task;
        queued_.fetch_add(1, std::memory_order_release);
        wake = sleeping_ > 0;
    }
    if (wake) wake_.notify_all();  // the lowest idle thread takes it
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

Executor::Task* Executor::take(unsigned thread) {
    const uint64_t mine = uint64_t{1} << thread, lower = mine - 1;
    {
        const std::lock_guard lock(mutex_);
        idle_ |= mine;
    }
    if (thread == 0) {
        spin_for_a_moment([this] { return queued_.load(std::memory_order_acquire) > 0; });
    }
    std::unique_lock lock(mutex_);
    for (;;) {
        while (!stop_ && (!first_ || (idle_ & lower) != 0)) {
            ++sleeping_;
            wake_.wait(lock);
            --sleeping_;
        }
        if (stop_ || thread == 0) break;
        // A lower thread tells its caller that a run is over a moment before it looks for work
        // again; it should get what that caller brings next.
        lock.unlock();
        const bool taken = spin_for_a_moment([&] {
            return queued_.load(std::memory_order_acquire) == 0 ||
                   (idle_.load(std::memory_order_acquire) & lower) != 0;
        });
        lock.lock();
        if (!taken && first_) break;
    }
    idle_ &= ~mine;
    Task* const task = first_;
    if (task) {
        first_ = task->next_;
        queued_.fetch_sub(1, std::memory_order_relaxed);
        if (first_ && sleeping_ > 0) wake_.notify_all();
    }
    return task;
}

void Executor::work(unsigned thread) {
    while (Task* const task = take(thread)) task->run(thread);
}

void name_this_thread(const char* name) {
    char short_name[16] = {};
    for (size_t i = 0; i + 1 < sizeof short_name && name[i]; ++i) short_name[i] = name[i];
    pthread_setname_np(pthread_self(), short_name);
}

}  // namespace vartml::runtime
