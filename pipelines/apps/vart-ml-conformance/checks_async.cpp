// SPDX-License-Identifier: Apache-2.0
// Checks of jobs: waiting, callbacks and their order, slots, refusals, destruction.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "checks.h"

namespace conformance {
namespace {

using std::chrono::milliseconds;
using vart::JobHandle;
using vart::StatusCode;

// What callbacks said. Shared with them, because a late one comes after the check.
struct Calls {
    std::mutex mutex;  // guards what follows
    std::condition_variable changed;
    std::vector<std::pair<uint32_t, StatusCode>> seen;
    std::thread::id thread;

    // Whether that many came.
    bool wait_for(size_t count) {
        std::unique_lock lock(mutex);
        return changed.wait_for(lock, long_wait, [&] { return seen.size() >= count; });
    }
    vart::Runner::ExecuteAsyncCallback callback(std::shared_ptr<Calls> self) {
        return [self](const JobHandle& job) {
            const std::lock_guard lock(self->mutex);
            self->seen.push_back({job.job_id, job.status});
            self->thread = std::this_thread::get_id();
            self->changed.notify_all();
        };
    }
};

// Tries until a slot is free.
template <class... Callback>
JobHandle submit(vart::Runner& runner, Frame& frame, const Callback&... callback) {
    const auto end = std::chrono::steady_clock::now() + long_wait;
    for (;;) {
        const JobHandle job = runner.execute_async(frame.inputs, frame.outputs, callback...);
        if (job.status != StatusCode::RESOURCE_UNAVAILABLE ||
            std::chrono::steady_clock::now() > end)
            return job;
        std::this_thread::sleep_for(milliseconds(1));
    }
}

Seen refused_job(const JobHandle& job) {
    return expect_status(job.status, StatusCode::SUCCESS);
}

Seen waits(Model& model) {
    vart::Runner& runner = model.runner();
    Frame frame = plain_frame(runner), blocking = plain_frame(runner);
    const JobHandle job = submit(runner, frame);
    if (job.status != StatusCode::SUCCESS) return refused_job(job);
    if (job.job_id == 0) return differs("a job with id 0");
    const StatusCode status = runner.wait(job, long_wait);
    if (status != StatusCode::SUCCESS) return expect_status(status, StatusCode::SUCCESS);
    (void)runner.execute(blocking.inputs, blocking.outputs);
    return same_if(bytes_of(frame.outputs[0]) == bytes_of(blocking.outputs[0]),
                   "outputs as of execute");
}

Seen polls(Model& model) {
    vart::Runner& runner = model.runner();
    Frame frame = plain_frame(runner);
    const JobHandle job = submit(runner, frame);
    if (job.status != StatusCode::SUCCESS) return refused_job(job);
    const auto end = std::chrono::steady_clock::now() + long_wait;
    StatusCode status;
    while ((status = runner.wait(job, milliseconds(0))) == StatusCode::JOB_PENDING &&
           std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(milliseconds(1));
    return expect_status(status, StatusCode::SUCCESS);
}

Seen waits_again(Model& model) {
    vart::Runner& runner = model.runner();
    Frame frame = plain_frame(runner);
    const JobHandle job = submit(runner, frame);
    if (job.status != StatusCode::SUCCESS) return refused_job(job);
    (void)runner.wait(job, long_wait);
    return expect_status(runner.wait(job, milliseconds(100)), StatusCode::INVALID_JOB_ID);
}

Seen calls_back(Model& model) {
    vart::Runner& runner = model.runner();
    Frame frame = plain_frame(runner);
    const auto calls = std::make_shared<Calls>();
    const JobHandle job = submit(runner, frame, calls->callback(calls));
    if (job.status != StatusCode::SUCCESS) return refused_job(job);
    if (!calls->wait_for(1)) return differs("no callback within 30 s");
    const std::lock_guard lock(calls->mutex);
    if (calls->seen[0].first != job.job_id) return differs("another id");
    if (calls->thread == std::this_thread::get_id()) return differs("on the submitting thread");
    return expect_status(calls->seen[0].second, StatusCode::SUCCESS);
}

Seen waits_beside_callback(Model& model) {
    vart::Runner& runner = model.runner();
    Frame frame = plain_frame(runner);
    const auto calls = std::make_shared<Calls>();
    const JobHandle job = submit(runner, frame, calls->callback(calls));
    if (job.status != StatusCode::SUCCESS) return refused_job(job);
    const Seen seen = expect_status(runner.wait(job, long_wait), StatusCode::SUCCESS);
    return calls->wait_for(1) ? seen : differs("no callback within 30 s");
}

Seen calls_in_order(Model& model, const std::string& order) {
    const auto runner = model.open({{"callback_order", order}, {"max_concurrent_runs", 4u}});
    const auto calls = std::make_shared<Calls>();
    std::deque<Frame> frames;
    std::vector<uint32_t> ids;
    for (unsigned i = 0; i < 12; ++i) {
        const JobHandle job = submit(*runner, frames.emplace_back(plain_frame(*runner, 1, i)),
                                     calls->callback(calls));
        if (job.status != StatusCode::SUCCESS) return refused_job(job);
        ids.push_back(job.job_id);
    }
    if (!calls->wait_for(ids.size())) return differs("callbacks are missing after 30 s");
    const std::lock_guard lock(calls->mutex);
    std::vector<uint32_t> seen;
    for (const auto& call : calls->seen) seen.push_back(call.first);
    if (order == "completion") {
        std::sort(seen.begin(), seen.end());
        std::sort(ids.begin(), ids.end());
    }
    return same_if(seen == ids, std::to_string(seen.size()) + " callbacks" +
                                    (seen == ids ? "" : " in another order"));
}

Seen burst(Model& model) {
    const auto runner = model.open({{"max_concurrent_runs", 1u}});
    std::deque<Frame> frames;
    std::vector<JobHandle> jobs;
    size_t busy = 0;
    for (unsigned i = 0; i < 64; ++i) {
        Frame& frame = frames.emplace_back(plain_frame(*runner));
        const JobHandle job = runner->execute_async(frame.inputs, frame.outputs);
        if (job.status == StatusCode::SUCCESS) {
            jobs.push_back(job);
        } else if (job.status == StatusCode::RESOURCE_UNAVAILABLE && job.job_id == 0) {
            ++busy;
        } else {
            return differs(name_of(job.status) + " with id " + std::to_string(job.job_id));
        }
    }
    for (const JobHandle& job : jobs) {
        const StatusCode status = runner->wait(job, long_wait);
        if (status != StatusCode::SUCCESS)
            return differs("a job that was taken ends with " + name_of(status));
    }
    return same(std::to_string(jobs.size()) + " taken, " + std::to_string(busy) + " refused");
}

Seen refuses_wrong_job(Model& model) {
    vart::Runner& runner = model.runner();
    const auto calls = std::make_shared<Calls>();
    Tensors none;
    const JobHandle job = runner.execute_async(none, none, calls->callback(calls));
    if (job.status != StatusCode::INVALID_INPUT || job.job_id != 0)
        return differs(name_of(job.status) + " with id " + std::to_string(job.job_id));
    const std::lock_guard lock(calls->mutex);
    return same_if(calls->seen.empty(),
                   calls->seen.empty() ? "INVALID_INPUT, no callback" : "a callback");
}

Seen forgets_tensors(Model& model) {
    vart::Runner& runner = model.runner();
    Frame frame = plain_frame(runner);
    const JobHandle job = submit(runner, frame);
    frame.inputs.clear();
    frame.outputs.clear();
    if (job.status != StatusCode::SUCCESS) return refused_job(job);
    return expect_status(runner.wait(job, long_wait), StatusCode::SUCCESS);
}

Seen survives_exception(Model& model) {
    const auto runner = model.open();
    Frame frame = plain_frame(*runner);
    const JobHandle job =
        submit(*runner, frame, [](const JobHandle&) { throw std::runtime_error("of a callback"); });
    if (job.status != StatusCode::SUCCESS) return refused_job(job);
    (void)runner->wait(job, long_wait);
    const auto calls = std::make_shared<Calls>();
    const JobHandle next = submit(*runner, frame, calls->callback(calls));
    if (next.status != StatusCode::SUCCESS) return refused_job(next);
    return same_if(calls->wait_for(1), "the next job runs");
}

Seen submits_from_callback(Model& model) {
    const auto runner = model.open({{"max_concurrent_runs", 1u}});
    Frame first = plain_frame(*runner), second = plain_frame(*runner, 1, 1);
    const auto calls = std::make_shared<Calls>();
    const auto after = calls->callback(calls);
    auto from_callback = std::make_shared<std::atomic<int>>(-1);
    const JobHandle job = submit(*runner, first, [&, from_callback, after](const JobHandle&) {
        const JobHandle next = runner->execute_async(second.inputs, second.outputs, after);
        *from_callback = int(next.status);
        if (next.status != StatusCode::SUCCESS) after(next);
    });
    if (job.status != StatusCode::SUCCESS) return refused_job(job);
    if (!calls->wait_for(1)) return differs("no callback within 30 s");
    const std::lock_guard lock(calls->mutex);
    return expect_status(calls->seen[0].second, StatusCode::SUCCESS);
}

Seen destroyed_with_jobs(Model& model) {
    auto runner = model.open({{"max_concurrent_runs", 4u}});
    const auto calls = std::make_shared<Calls>();
    std::deque<Frame> frames;
    size_t taken = 0;
    for (unsigned i = 0; i < 4; ++i) {
        Frame& frame = frames.emplace_back(plain_frame(*runner));
        taken +=
            runner->execute_async(frame.inputs, frame.outputs, calls->callback(calls)).status ==
            StatusCode::SUCCESS;
    }
    runner.reset();
    const std::lock_guard lock(calls->mutex);
    return same_if(
        calls->seen.size() == taken,
        std::to_string(calls->seen.size()) + " callbacks of " + std::to_string(taken) + " jobs");
}

Seen dropped_in_callback(Model& model) {
    auto runner = model.open();
    const auto calls = std::make_shared<Calls>();
    const auto after = calls->callback(calls);
    // The job's callback holds the last reference.
    auto held = std::make_shared<std::shared_ptr<vart::Runner>>();
    std::mutex submitting;
    Frame frame = plain_frame(*runner);
    JobHandle job;
    {
        const std::lock_guard lock(submitting);
        job = submit(*runner, frame, [&submitting, held, after](const JobHandle& done) {
            {
                const std::lock_guard wait(submitting);
            }
            held->reset();
            after(done);
        });
        *held = std::move(runner);
    }
    if (job.status != StatusCode::SUCCESS) return refused_job(job);
    return same_if(calls->wait_for(1), "destroyed");
}

}  // namespace

std::vector<Check> async_checks() {
    return {
        {"async/wait", "SUCCESS, an id from 1, outputs as of execute", true, waits},
        {"async/poll", "JOB_PENDING until SUCCESS", true, polls},
        {"async/wait again", "INVALID_JOB_ID", true, waits_again},
        {"async/id 0", "INVALID_JOB_ID", true,
         [](Model& model) {
             return expect_status(model.runner().wait({StatusCode::SUCCESS, 0}, milliseconds(0)),
                                  StatusCode::INVALID_JOB_ID);
         }},
        {"async/unknown id", "INVALID_JOB_ID", true,
         [](Model& model) {
             return expect_status(
                 model.runner().wait({StatusCode::SUCCESS, 4000000000u}, milliseconds(0)),
                 StatusCode::INVALID_JOB_ID);
         }},
        {"async/callback", "id and SUCCESS, on another thread", true, calls_back},
        {"async/wait beside a callback", "SUCCESS and the callback", false, waits_beside_callback},
        {"async/order submission", "callbacks in the order of jobs", true,
         [](Model& model) { return calls_in_order(model, "submission"); }},
        {"async/order completion", "a callback of each job", true,
         [](Model& model) { return calls_in_order(model, "completion"); }},
        {"async/slots", "jobs beyond max_concurrent_runs are refused", true, burst},
        {"async/wrong job", "INVALID_INPUT, id 0, no callback", false, refuses_wrong_job},
        {"async/tensors gone", "SUCCESS, only buffers must stay", false, forgets_tensors},
        {"async/job from a callback", "SUCCESS in the slot that is free", false,
         submits_from_callback},
        {"async/exception in a callback", "no effect on later jobs", false, survives_exception},
        {"async/destroyed with jobs", "waits for jobs and callbacks", false, destroyed_with_jobs},
        {"async/dropped in a callback", "the runner is destroyed", false, dropped_in_callback},
    };
}

}  // namespace conformance
