// SPDX-License-Identifier: Apache-2.0
// Runs of one runner: queueing, slots, records that wait() looks at, callbacks.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include <vartml/log.h>
#include <vart/vart_runner_factory.hpp>

#include "lib/run/exec/executor.h"
#include "lib/run/vart/engine.h"
#include "lib/run/vart/profiler.h"
#include "lib/run/vart/tensor_info.h"
#include "lib/run/vart/vart_errors.h"

namespace vartml::runtime {

// Log lines of one runner: its name in front, its own level.

class Logger {
public:
    Logger(const std::string& name, LogLevel level) : name_(clean(name)), level_(level) {}
    void operator()(LogLevel level, std::string_view text) const {
        if (level <= level_) log(level, name_, clean(text), true);
    }
    const std::string& name() const { return name_; }

private:
    std::string name_;
    LogLevel level_;
};

// Do the tensors of a call fit the model?

using Tensors = std::vector<std::vector<vart::NpuTensor>>;

// SUCCESS, or INVALID_INPUT or INVALID_OUTPUT with a sentence that names batch index, tensor and
// difference.
struct Verdict {
    vart::StatusCode status = vart::StatusCode::SUCCESS;
    std::string text;
    explicit operator bool() const { return status == vart::StatusCode::SUCCESS; }
};

// What a call is held against.
struct Expected {
    const TensorTables* tables;
    size_t batch_size;
    MemoryProvider* memory;  // of the runner
};

// A batch whose tensors are not in the model's order, in that order. Nothing where they are, or
// where the names are not the model's. Applications that choose views tensor by tensor list them
// view by view, so only then order is looked at.
std::optional<Tensors> in_model_order(const TensorTables& tables, vart::TensorDirection direction,
                                      const Tensors& batch);

// Touches no buffer; imports or maps descriptors. The outputs may hold more elements than the
// inputs: those are not written.
Verdict check_tensors(const Expected& expected, const Tensors& inputs, const Tensors& outputs);

struct JobOptions {
    unsigned in_flight = 2;  // asynchronous jobs, more are refused
    // At most so many asynchronous jobs run, and callbacks are called, at the same time.
    unsigned async_threads = 10;
    bool callbacks_in_submission_order = true;
    uint32_t last_id = UINT32_MAX;  // numbers of jobs go from 1 to it, then from 1 again
};

struct JobCounters {
    std::atomic<uint64_t> submitted{0}, completed{0}, failed{0}, refused{0};
};

// Outcome of a call, with the sentence of a failure.
struct Outcome {
    vart::StatusCode status = vart::StatusCode::SUCCESS;
    std::string text;
};

// Thread-safety: all members may be called concurrently.
class Jobs {
public:
    using Callback = vart::Runner::ExecuteAsyncCallback;

    // `engine` must outlive this object.
    Jobs(Engine& engine, std::shared_ptr<device::Executor> executor, const JobOptions& options,
         const Logger& logger, std::shared_ptr<Profiler> profiler);
    Jobs(const Jobs&) = delete;
    Jobs& operator=(const Jobs&) = delete;
    ~Jobs();  // waits for accepted jobs and their callbacks

    // The tensors were checked. Runs on the calling thread where nothing waits before it, else
    // behind queued work; is not counted among the asynchronous jobs.
    // `entered` is what call_begins() returned.
    Outcome run(const Tensors& inputs, const Tensors& outputs, uint64_t entered);
    // The tensors were checked. {RESOURCE_UNAVAILABLE, 0} if as many are in flight as may
    // be.
    vart::JobHandle submit(const Tensors& inputs, const Tensors& outputs, Callback callback,
                           uint64_t entered);
    // The time, where somebody asks for it.
    uint64_t call_begins() const { return profiler_->is_on() ? profiling::monotonic_ns() : 0; }
    Outcome wait(uint32_t id, std::chrono::milliseconds timeout);

    // Mean duration of each step of the program in nanoseconds, between the runs of others.
    std::vector<double> time_steps(unsigned runs);

    unsigned in_flight() const { return in_flight_.load(std::memory_order_relaxed); }
    const JobCounters& counters() const { return counters_; }
    // Is the calling thread inside a callback of this object?
    bool on_callback_thread() const;

private:
    // What wait() sees of a job; nodes are used again, so that a steady state allocates nothing.
    struct Record {
        std::atomic<bool> is_final{false};
        vart::StatusCode status = vart::StatusCode::JOB_PENDING;
        std::string text;
        unsigned waiters = 0;
        bool is_collected = false;            // a final status was returned; kept for waiters only
        Recording* recording = nullptr;       // of a finished job without a callback
        std::list<uint32_t>::iterator place;  // in unfinished_, then finished_
    };
    using Records = std::unordered_map<uint32_t, Record>;

    // A run; objects are used again. It gets its slot when its turn in the executor comes.
    struct Job final : device::Executor::Task {
        void run(unsigned core) noexcept override { jobs->execute(*this, core); }
        Jobs* jobs = nullptr;
        unsigned slot = 0;      // of the engine: whose memory it uses
        bool has_slot = false;  // when it is given to the executor
        bool is_callers =
            false;  // on the thread of a synchronous call, which has no time for others
        const std::function<void(unsigned slot)>* work = nullptr;  // instead of a run
        std::vector<vart::NpuTensor> inputs, outputs;              // [batch * tensor]
        size_t batch = 0;
        uint32_t id = 0;  // 0: synchronous
        Callback callback;
        vart::StatusCode status = vart::StatusCode::SUCCESS;
        std::string text;
        Recording* recording = nullptr;  // null: not captured
        std::atomic<bool> is_done{false};
        Job* next = nullptr;          // of the callbacks to come
        Job* next_waiting = nullptr;  // of the jobs that wait for a slot
    };

    void execute(Job& job, unsigned core) noexcept;
    void execute_in_slot(Job& job, unsigned core) noexcept;
    void run_batch(Job& job) noexcept;
    // The job that waits for the slot, and has it now, or null: then `this` may be gone.
    Job* finish(Job& job) noexcept;
    Job& fill(const Tensors& inputs, const Tensors& outputs);
    void start_recording(Job& job, uint64_t entered);
    void stamp_queued(Job& job) const;
    void deliver(Recording* recording) noexcept;
    // The rest is called with mutex_ held.
    bool take_slot(Job& job);  // false: the job waits for one
    bool may_run(const Job& job) const;
    // Of a job that has ended; the job that has its slot now, or null.
    Job* give_slot(const Job& ended) noexcept;
    void recycle(Job& job);
    uint32_t id_after(uint32_t id) const { return id == options_.last_id ? 1 : id + 1; }
    uint32_t next_free_id();
    Record& add_record(uint32_t id);
    // Returns a recording that nobody will claim any more, or null.
    Recording* make_final(Job& job);
    Recording* drop_oldest();  // with its warning; the recording that nobody claimed
    void drop_record(Records::iterator record);
    Recording* collect(Records::iterator record);
    Job* next_callback();
    void add_callback_thread();
    void call_back();
    void call(const Callback& callback, const vart::JobHandle& job) const noexcept;

    Engine& engine_;
    const std::shared_ptr<device::Executor> executor_;
    const JobOptions options_;
    const Logger& logger_;
    const std::shared_ptr<Profiler> profiler_;

    // Guards what follows up to the counters. Taken before the executor's lock, never inside it;
    // never held in a callback.
    std::mutex mutex_;
    std::condition_variable finished_cv_;  // a job is done; everything is idle
    std::condition_variable callback_cv_;  // a callback may be due; stop
    std::vector<std::unique_ptr<Job>> all_jobs_;
    std::vector<Job*> free_jobs_;
    unsigned active_ = 0;               // jobs between fill() and recycle()
    std::vector<unsigned> free_slots_;  // of the engine; room for all
    Job* first_waiting_ = nullptr;      // for a slot, in the order of the calls
    Job* last_waiting_ = nullptr;
    std::atomic<unsigned> num_waiting_{0};
    unsigned used_ = 0;           // of JobOptions::in_flight
    unsigned running_async_ = 0;  // of JobOptions::async_threads; they have slots
    uint32_t next_id_ = 1;
    Records records_;
    std::vector<Records::node_type> spare_records_;
    std::list<uint32_t> finished_;  // final and not collected, oldest first
    std::list<uint32_t> unfinished_, spare_places_;
    std::vector<uint32_t> unclaimed_;  // finished jobs with a recording, oldest first
    bool has_warned_ = false;
    Job* first_callback_ = nullptr;  // submission order: in id order; else in order of completion
    Job* last_callback_ = nullptr;
    unsigned pending_callbacks_ = 0, running_callbacks_ = 0;
    bool stop_ = false;
    std::vector<std::thread> callback_threads_;

    std::atomic<unsigned> in_flight_{0};
    JobCounters counters_;
};

}  // namespace vartml::runtime
