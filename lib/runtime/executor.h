// SPDX-License-Identifier: Apache-2.0
// The threads that run programs: the runtime owns them, every runner of a device shares them.
#pragma once
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

#include "lib/device/device.h"

namespace vartml::runtime {

// How long a thread looks for work, or for its result, before it sleeps. Waking a sleeping thread
// costs as much as a small model runs; measured in the commit that set it.
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

// First in, first out over all runners of a device. OpenMP teams belong to these threads, so that
// oneDNN never runs on a thread of the application.
// Thread-safety: all members may be called concurrently.
class Executor {
public:
    // Work, queued in place: no allocation. `run` may destroy or queue the task again.
    struct Task {
        virtual void run(unsigned thread) noexcept = 0;

    protected:
        ~Task() = default;

    private:
        friend class Executor;
        Task* next_ = nullptr;
    };

    // The executor of that device; its threads end with the last owner.
    static std::shared_ptr<Executor> of(device::Device& device);

    Executor(const std::string& name, unsigned num_threads);
    Executor(const Executor&) = delete;
    Executor& operator=(const Executor&) = delete;
    ~Executor();  // everything queued is run first

    void submit(Task& task);
    // Runs `work` in its turn and waits for it. Not on a thread of the executor. Programs are
    // loaded and destroyed this way too: the scratch memory of oneDNN belongs to the thread that
    // makes a primitive.
    void call(const std::function<void()>& work);
    unsigned num_threads() const { return static_cast<unsigned>(threads_.size()); }

private:
    void work(unsigned thread);
    Task* take(unsigned thread);

    std::mutex mutex_;  // guards what follows; a leaf lock
    std::condition_variable wake_;
    Task* first_ = nullptr;
    Task* last_ = nullptr;
    unsigned sleeping_ = 0;
    // Threads that look for work, a bit each. The lowest of them takes the next task, so that runs
    // that come one by one stay on one thread: each thread has an OpenMP team of its own, and idle
    // teams spin.
    std::atomic<uint64_t> idle_{0};  // written under the lock
    bool stop_ = false;
    std::atomic<unsigned> queued_{0};  // tasks in the list; read without the lock while spinning
    std::vector<std::thread> threads_;
};

// The name that debuggers and `top` show; at most 15 characters count.
void name_this_thread(const char* name);

}  // namespace vartml::runtime
