// SPDX-License-Identifier: Apache-2.0
// The threads that run programs: one executor per device, shared by every runner.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace vartml::device {

class Device;
class SharedRun;

// How long a thread looks for work, or for its result, before it sleeps: about what it costs to
// wake a sleeping thread.
inline constexpr std::chrono::microseconds spin_time{50};

// Calls `ready` until it is true or spin_time is over; gives the processor to others in between.
template <typename Ready>
bool spin_for_a_moment(const Ready& ready) {
    const auto end = std::chrono::steady_clock::now() + spin_time;
    do {
        for (int i = 0; i < 8; ++i)
            if (ready()) return true;
        std::this_thread::yield();
    } while (std::chrono::steady_clock::now() < end);
    return ready();
}

// Tasks, first in, first out over all runners of a device. A thread without a task helps the runs
// that go on (shared_run.h), so that a run has all processors when it is alone and one when there
// are as many runs as processors; threads at work are never more than processors for long.
// Thread-safety: all members may be called concurrently.
class Executor {
public:
    static constexpr unsigned max_threads = 64;

    // Work, queued in place: no allocation. `slot` is below num_threads() and no other task's that
    // runs at the same time. `run` may destroy or queue the task again.
    struct Task {
        virtual void run(unsigned slot) noexcept = 0;

    protected:
        ~Task() = default;

    private:
        friend class Executor;
        Task* next_ = nullptr;
    };

    // The executor of that device in this process; its threads end with the last owner.
    static std::shared_ptr<Executor> of(Device& device);

    // Up to max_threads threads.
    Executor(const std::string& name, unsigned num_threads);
    Executor(const Executor&) = delete;
    Executor& operator=(const Executor&) = delete;
    ~Executor();  // everything queued is run first

    void submit(Task& task);
    // Runs the task on the calling thread where nothing waits before it, which saves a change of
    // threads; false where it must be submitted.
    bool try_run(Task& task);
    // Runs `work` in its turn on a thread of the executor and waits for it. Not on such a thread.
    void call(const std::function<void()>& work);
    // Tasks that wait for a thread.
    unsigned num_queued() const { return queued_.load(std::memory_order_relaxed); }
    unsigned num_threads() const { return static_cast<unsigned>(threads_.size()); }
    // This process is a fork of the one that made the executor and has none of its threads: what is
    // submitted never runs, and the executor must not end here.
    bool is_of_another_process() const;

    // While it lives the calling thread's task waits for another one and leaves its processor to
    // helpers; nothing outside a task.
    class Waiting {
    public:
        Waiting();
        ~Waiting();
        Waiting(const Waiting&) = delete;
        Waiting& operator=(const Waiting&) = delete;

    private:
        Executor* const executor_;
    };

    // For SharedRun: offers the run of the calling thread's task to `helpers` idle threads; no-op
    // outside a task. withdraw() returns at once, forget() when no thread is inside `run`.
    static Executor* current();
    void offer(SharedRun& run, unsigned helpers);
    void withdraw();
    void forget(const SharedRun& run) const;
    // Whether helpers should look for better work.
    bool wants_helpers_back() const {
        return queued_.load(std::memory_order_relaxed) > 0 ||
               active_.load(std::memory_order_relaxed) > threads_.size();
    }

private:
    // The run of a slot that others may help.
    struct alignas(64) Offer {
        std::atomic<SharedRun*> run{nullptr};
        std::atomic<unsigned> helpers{0}, seats{0};  // seats: helpers inside
    };
    struct alignas(64) Helper {
        std::atomic<const SharedRun*> inside{nullptr};
    };

    void end();  // everything queued is run first
    void work(unsigned thread);
    bool run_next();
    bool help(unsigned thread);
    Task* take(unsigned& slot);  // called with mutex_ held
    void run_in_slot(Task& task, unsigned slot);
    void announce(unsigned wanted);
    void sleep(uint64_t seen);

    const unsigned process_;
    std::mutex mutex_;  // guards the queue, the slots and stop_; a leaf lock
    std::condition_variable wake_;
    Task* first_ = nullptr;
    Task* last_ = nullptr;
    uint64_t free_slots_ = 0;  // a bit each
    bool stop_ = false;

    std::atomic<unsigned> queued_{0};  // tasks in the list
    std::atomic<unsigned> active_{0};  // threads inside tasks, helpers included
    std::atomic<uint64_t> news_{0};    // rises when there may be something to do
    std::atomic<unsigned> spinning_{0}, sleeping_{0};
    std::array<Offer, max_threads> offers_;
    std::array<Helper, max_threads> helpers_;
    std::vector<std::thread> threads_;
};

// The name that debuggers and `top` show; at most 15 characters count.
void name_this_thread(const char* name);

}  // namespace vartml::device
