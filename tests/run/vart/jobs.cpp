// SPDX-License-Identifier: Apache-2.0
// Asynchronous jobs: slots, ids, wait, callbacks, destruction.
#include <gtest/gtest.h>

#include <algorithm>
#include <any>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "lib/run/vart/runner.h"
#include "tests/support/fake_runner.h"

namespace {
using namespace vart;
using namespace vartml::test;
using namespace std::chrono_literals;
using vartml::Error;
using vartml::ErrorCode;
using vartml::Result;
using vartml::runtime::Options;
using vartml::runtime::Tensors;

constexpr auto forever = std::chrono::milliseconds::max();

class AsyncJobs : public testing::Test {
protected:
    void open(Options options = {}, unsigned num_cores = 1) {
        device = std::make_unique<FakeDevice>(num_cores);
        runner = make_runner(picture_model(), std::move(options));
        ASSERT_TRUE(runner);
        inputs = allocate(*runner, TensorDirection::INPUT);
    }
    // A job with outputs of its own.
    JobHandle submit(Runner::ExecuteAsyncCallback callback = {}) {
        Tensors outputs = allocate(*runner, TensorDirection::OUTPUT);
        return runner->execute_async(inputs, outputs, std::move(callback));
    }
    std::unique_ptr<FakeDevice> device;
    std::shared_ptr<vartml::runtime::VaimlRunner> runner;
    Tensors inputs;
};

// Counts events that other threads report.
class Events {
public:
    void add(uint32_t value) {
        const std::lock_guard lock(mutex_);
        values_.push_back(value);
        cv_.notify_all();
    }
    std::vector<uint32_t> wait_for(size_t count) {
        std::unique_lock lock(mutex_);
        cv_.wait(lock, [&] { return values_.size() >= count; });
        return values_;
    }

private:
    std::mutex mutex_;
    std::condition_variable cv_;
    std::vector<uint32_t> values_;
};

TEST_F(AsyncJobs, HaveConsecutiveIdsAndAFinalStatusOnce) {
    open();
    for (uint32_t id = 1; id <= 3; ++id) {
        const JobHandle job = submit();
        EXPECT_EQ(job.status, StatusCode::SUCCESS);
        EXPECT_EQ(job.job_id, id);
        EXPECT_EQ(runner->wait(job, forever), StatusCode::SUCCESS);
        const LogLines log;
        EXPECT_EQ(runner->wait(job, 0ms), StatusCode::INVALID_JOB_ID);
    }
    const LogLines log;
    EXPECT_EQ(runner->wait(JobHandle(StatusCode::SUCCESS, 0), 1ms), StatusCode::INVALID_JOB_ID);
    EXPECT_EQ(runner->wait(JobHandle(StatusCode::SUCCESS, 99), 1ms), StatusCode::INVALID_JOB_ID);
}

TEST_F(AsyncJobs, RefuseWithoutQueueingWhenAllSlotsAreBusy) {
    open();
    LogLines log;
    device->hold();
    const JobHandle first = submit(), second = submit();
    EXPECT_EQ(second.status, StatusCode::SUCCESS);
    const JobHandle third = submit();
    EXPECT_EQ(third.status, StatusCode::RESOURCE_UNAVAILABLE);
    EXPECT_EQ(third.job_id, 0u);
    EXPECT_EQ(std::any_cast<uint32_t>(runner->get_property("jobs_in_flight")), 2u);
    EXPECT_EQ(std::any_cast<uint64_t>(runner->get_property("jobs_refused")), 1u);
    for (const auto timeout : {0ms, -5ms, 1ms})
        EXPECT_EQ(runner->wait(first, timeout), StatusCode::JOB_PENDING);
    device->release(1);
    EXPECT_EQ(runner->wait(first, forever), StatusCode::SUCCESS);
    const JobHandle fourth = submit();  // the slot is free when wait returns
    EXPECT_EQ(fourth.status, StatusCode::SUCCESS);
    EXPECT_EQ(fourth.job_id, 3u);  // a refusal uses up no id
    device->release_all();
    EXPECT_EQ(runner->wait(fourth, forever), StatusCode::SUCCESS);
    EXPECT_EQ(runner->wait(second, std::chrono::hours(24 * 365)), StatusCode::SUCCESS);
    EXPECT_TRUE(log.take().empty());  // neither a refusal nor a pending job is worth a line
}

// The pool's threads are those that run them; execute() needs none of them.
TEST_F(AsyncJobs, RunOnNoMoreThreadsThanThePoolHas) {
    Options options;
    options.max_concurrent_runs = 4;
    options.async_threadpool_depth = 1;
    open(options, 4);
    std::atomic<unsigned> inside{0}, most{0};
    device->set_run([&](unsigned, auto, auto) -> Result<void> {
        most = std::max(most.load(), ++inside);
        for (int i = 0; i < 1000; ++i) std::this_thread::yield();
        --inside;
        return {};
    });
    std::vector<JobHandle> jobs;
    for (int i = 0; i < 4; ++i) jobs.push_back(submit());
    for (const JobHandle& job : jobs) EXPECT_EQ(runner->wait(job, forever), StatusCode::SUCCESS);
    EXPECT_EQ(most, 1u);

    device->hold();
    const unsigned before = device->started();
    const JobHandle first = submit(), second = submit();
    device->wait_for_runs(before + 1);
    std::thread caller([&] {
        Tensors outputs = allocate(*runner, TensorDirection::OUTPUT);
        EXPECT_EQ(runner->execute(inputs, outputs), StatusCode::SUCCESS);
    });
    device->wait_for_runs(before + 2);  // beside the job that holds the pool's thread
    EXPECT_EQ(runner->wait(second, 0ms), StatusCode::JOB_PENDING);
    device->release_all();
    caller.join();
    EXPECT_EQ(runner->wait(first, forever), StatusCode::SUCCESS);
    EXPECT_EQ(runner->wait(second, forever), StatusCode::SUCCESS);
}

TEST_F(AsyncJobs, AreNoBoundForExecute) {
    open();
    device->hold();
    const JobHandle a = submit(), b = submit();
    std::thread caller([&] {
        Tensors outputs = allocate(*runner, TensorDirection::OUTPUT);
        EXPECT_EQ(runner->execute(inputs, outputs), StatusCode::SUCCESS);
    });
    device->release_all();
    caller.join();
    EXPECT_EQ(runner->wait(a, forever), StatusCode::SUCCESS);
    EXPECT_EQ(runner->wait(b, forever), StatusCode::SUCCESS);
}

TEST_F(AsyncJobs, SkipIdsOfLiveRecordsAfterTheLargest) {
    device = std::make_unique<FakeDevice>(1);
    auto state = vartml::runtime::prepare("fake.rai", picture_model(), {});
    ASSERT_TRUE(state) << state.error().message;
    (*state)->jobs = std::make_unique<vartml::runtime::Jobs>(
        *(*state)->engine, (*state)->executor, vartml::runtime::JobOptions{.last_id = 3},
        (*state)->logger,
        std::make_shared<vartml::runtime::Profiler>(vartml::runtime::ProfilerSetup()));
    runner = std::make_shared<vartml::runtime::VaimlRunner>(std::move(*state));
    inputs = allocate(*runner, TensorDirection::INPUT);
    const JobHandle first = submit();  // its record stays while nobody waits for it
    EXPECT_EQ(first.job_id, 1u);
    for (const uint32_t id : {2u, 3u, 2u, 3u}) {
        const JobHandle job = submit();
        EXPECT_EQ(job.job_id, id);
        EXPECT_EQ(runner->wait(job, forever), StatusCode::SUCCESS);
    }
    EXPECT_EQ(runner->wait(first, 0ms), StatusCode::SUCCESS);
    EXPECT_EQ(submit().job_id, 1u);
}

TEST_F(AsyncJobs, GiveAllWaitingThreadsTheFinalStatus) {
    open();
    device->hold();
    const JobHandle job = submit();
    std::vector<std::thread> threads;
    Events waiting;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            waiting.add(1);
            // Whoever comes after the first has returned finds no job any more.
            const StatusCode status = runner->wait(job, forever);
            EXPECT_TRUE(status == StatusCode::SUCCESS || status == StatusCode::INVALID_JOB_ID);
        });
    waiting.wait_for(4);
    device->release_all();
    for (auto& thread : threads) thread.join();
}

TEST_F(AsyncJobs, KeepTheNewestRecordsOfJobsNobodyWaitedFor) {
    open();
    LogLines log;
    Tensors outputs = allocate(*runner, TensorDirection::OUTPUT);
    for (int i = 0; i < 4098; ++i) {
        JobHandle job = runner->execute_async(inputs, outputs);
        while (job.status == StatusCode::RESOURCE_UNAVAILABLE) {
            std::this_thread::yield();
            job = runner->execute_async(inputs, outputs);
        }
        ASSERT_EQ(job.status, StatusCode::SUCCESS);
    }
    EXPECT_EQ(runner->wait(JobHandle(StatusCode::SUCCESS, 4098), forever), StatusCode::SUCCESS);
    EXPECT_EQ(runner->wait(JobHandle(StatusCode::SUCCESS, 3), 0ms), StatusCode::SUCCESS);
    const auto lines = log.take();
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].first, vartml::LogLevel::warning);
    EXPECT_EQ(runner->wait(JobHandle(StatusCode::SUCCESS, 2), 0ms), StatusCode::INVALID_JOB_ID);
}

TEST_F(AsyncJobs, CallBackInSubmissionOrderWhateverTheOrderOfCompletion) {
    Options options;
    options.max_concurrent_runs = 4;
    open(options, 4);
    // Each run waits for all later ones: completion is in reverse.
    std::mutex mutex;
    std::condition_variable cv;
    unsigned done = 0;
    device->set_run([&](unsigned run, auto, auto) -> Result<void> {
        std::unique_lock lock(mutex);
        cv.wait(lock, [&] { return done >= 3 - run; });
        ++done;
        cv.notify_all();
        if (run == 2) return Error{ErrorCode::device, "lost"};
        return {};
    });
    const LogLines log;
    Events order;
    std::vector<JobHandle> jobs;
    const auto submitter = std::this_thread::get_id();
    for (unsigned i = 0; i < 4; ++i) {
        jobs.push_back(submit([&](const JobHandle& job) {
            EXPECT_NE(std::this_thread::get_id(), submitter);
            order.add(job.job_id * 10 + static_cast<uint32_t>(job.status));
        }));
        device->wait_for_runs(i + 1);  // run i belongs to job i + 1
    }
    const auto lost = static_cast<uint32_t>(StatusCode::RUNTIME_ERROR);
    EXPECT_EQ(order.wait_for(4), (std::vector<uint32_t>{10, 20, 30 + lost, 40}));
    EXPECT_EQ(runner->wait(jobs[2], forever), StatusCode::RUNTIME_ERROR);
    EXPECT_EQ(runner->wait(jobs[0], forever), StatusCode::SUCCESS);
}

// A device with room for four at a time, memory for one.
TEST_F(AsyncJobs, RunOneAfterAnotherInTheOrderOfTheCallsWhereMemoryIsForOne) {
    Options options;
    options.threads = 1;
    options.max_concurrent_runs = 4;
    open(options, 4);
    std::atomic<unsigned> inside{0}, most{0};
    device->set_run([&](unsigned, auto, auto) -> Result<void> {
        most = std::max(most.load(), ++inside);
        std::this_thread::yield();
        --inside;
        return {};
    });
    device->hold();
    Events order;
    for (unsigned i = 0; i < 4; ++i) submit([&](const JobHandle& job) { order.add(job.job_id); });
    device->wait_for_runs(1);
    std::thread caller([&] {
        Tensors outputs = allocate(*runner, TensorDirection::OUTPUT);
        EXPECT_EQ(runner->execute(inputs, outputs), StatusCode::SUCCESS);
    });
    std::thread measurer([&] {
        EXPECT_EQ(
            std::any_cast<std::vector<double>>(runner->get_property("vartml_internal_step_times")),
            std::vector<double>{1000.0});
    });
    EXPECT_EQ(device->started(), 1U);
    device->release_all();
    EXPECT_EQ(order.wait_for(4), (std::vector<uint32_t>{1, 2, 3, 4}));
    caller.join();
    measurer.join();
    EXPECT_EQ(most, 1U);
    EXPECT_EQ(device->started(), 5U);
}

TEST_F(AsyncJobs, CallBackAsTheyFinishWhenAskedTo) {
    Options options;
    options.max_concurrent_runs = 2;
    options.callbacks_in_submission_order = false;
    open(options, 2);
    std::mutex mutex;
    std::condition_variable cv;
    bool second_called = false;
    device->set_run([&](unsigned run, auto, auto) -> Result<void> {
        if (run == 1) return {};
        std::unique_lock lock(mutex);
        cv.wait(lock, [&] { return second_called; });
        return {};
    });
    Events order;
    submit([&](const JobHandle& job) { order.add(job.job_id); });
    device->wait_for_runs(1);
    submit([&](const JobHandle& job) {
        order.add(job.job_id);
        const std::lock_guard lock(mutex);
        second_called = true;
        cv.notify_all();
    });
    EXPECT_EQ(order.wait_for(2), (std::vector<uint32_t>{2, 1}));
}

TEST_F(AsyncJobs, FreeTheirSlotJustBeforeTheCallback) {
    Options options;
    options.max_concurrent_runs = 1;
    open(options);
    Events events;
    std::function<void(const JobHandle&)> next = [&](const JobHandle& job) {
        if (job.job_id < 5) {
            EXPECT_EQ(submit(next).status, StatusCode::SUCCESS);
        }
        // wait does not depend on the callback
        EXPECT_EQ(runner->wait(job, forever), StatusCode::SUCCESS);
        events.add(job.job_id);
    };
    EXPECT_EQ(submit(next).status, StatusCode::SUCCESS);
    EXPECT_EQ(events.wait_for(5), (std::vector<uint32_t>{1, 2, 3, 4, 5}));
}

TEST_F(AsyncJobs, SurviveCallbacksThatThrow) {
    open();
    LogLines log;
    Events events;
    submit([&](const JobHandle&) { throw std::runtime_error("oops"); });
    submit([&](const JobHandle& job) { events.add(job.job_id); });
    events.wait_for(1);
    const auto lines = log.take();
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].second, "callback of job 1 threw an exception: oops");
}

TEST_F(AsyncJobs, AreFinishedBeforeTheRunnerGoes) {
    open();
    device->hold();
    std::atomic<unsigned> called{0};
    submit([&](const JobHandle&) { ++called; });
    submit();
    std::thread end([&] { runner.reset(); });
    device->release_all();
    end.join();
    EXPECT_EQ(called, 1u);
    EXPECT_EQ(device->started(), 2u);
    EXPECT_EQ(device->alive, 0u);
}

TEST_F(AsyncJobs, LetACallbackDropTheLastReference) {
    open();
    Events events;
    {
        Tensors outputs = allocate(*runner, TensorDirection::OUTPUT);
        auto last = std::make_shared<std::shared_ptr<Runner>>(runner);
        device->hold();
        EXPECT_EQ(runner
                      ->execute_async(inputs, outputs,
                                      [last, &events](const JobHandle& job) {
                                          last->reset();
                                          events.add(job.job_id);
                                      })
                      .status,
                  StatusCode::SUCCESS);
        runner.reset();
        last.reset();
    }
    device->release_all();
    events.wait_for(1);
    while (device->alive != 0) std::this_thread::yield();  // another thread ends it
}

// The tensors of a call may go right after it.
TEST_F(AsyncJobs, KeepShallowCopiesOfTheirTensors) {
    open();
    device->hold();
    elements<uint16_t>(inputs[0][0])[3] = 77;
    Tensors outputs = allocate(*runner, TensorDirection::OUTPUT);
    NpuTensor result = outputs[0][0];
    const JobHandle job = runner->execute_async(inputs, outputs);
    inputs.clear();
    outputs.clear();
    device->release_all();
    EXPECT_EQ(runner->wait(job, forever), StatusCode::SUCCESS);
    EXPECT_EQ(elements<uint16_t>(result)[3], 77);
}

// First come, first served, over all runners of a device.
TEST_F(AsyncJobs, OfSeveralRunnersRunInTheOrderOfArrival) {
    open();
    const auto other = make_runner(picture_model());
    device->hold();
    std::mutex mutex;
    std::vector<uint16_t> order;
    device->set_run([&](unsigned, auto in, auto) -> Result<void> {
        const std::lock_guard lock(mutex);
        order.push_back(*static_cast<const uint16_t*>(in[0]));
        return {};
    });
    std::vector<std::pair<Runner*, JobHandle>> jobs;
    for (uint16_t i = 0; i < 4; ++i) {
        Runner& which = i % 2 ? *other : *runner;
        Tensors in = allocate(which, TensorDirection::INPUT);
        Tensors out = allocate(which, TensorDirection::OUTPUT);
        elements<uint16_t>(in[0][0])[0] = i;
        jobs.emplace_back(&which, which.execute_async(in, out));
    }
    device->release_all();
    for (auto& [which, job] : jobs) EXPECT_EQ(which->wait(job, forever), StatusCode::SUCCESS);
    EXPECT_EQ(order, (std::vector<uint16_t>{0, 1, 2, 3}));
}

}  // namespace
