// SPDX-License-Identifier: Apache-2.0
// What a callback may do, and on which threads it runs.
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "lib/run/vart/runner.h"
#include "tests/support/fake_runner.h"

namespace {
using namespace vart;
using namespace vartml::test;
using vartml::runtime::Options;
using vartml::runtime::Tensors;

constexpr auto forever = std::chrono::milliseconds::max();

class Callbacks : public testing::TestWithParam<bool> {
protected:
    void open(Options options) {
        options.callbacks_in_submission_order = GetParam();
        runner = make_runner(picture_model(), std::move(options));
        ASSERT_TRUE(runner);
        inputs = allocate(*runner, TensorDirection::INPUT);
    }
    JobHandle submit(Runner::ExecuteAsyncCallback callback) {
        Tensors outputs = allocate(*runner, TensorDirection::OUTPUT);
        return runner->execute_async(inputs, outputs, std::move(callback));
    }
    void expect_done(unsigned count) {
        std::unique_lock lock(mutex);
        cv.wait(lock, [&] { return done >= count; });
    }
    void tell() {
        const std::lock_guard lock(mutex);
        ++done;
        cv.notify_all();
    }

    FakeDevice device{2};
    std::shared_ptr<vartml::runtime::VaimlRunner> runner;
    Tensors inputs;
    std::mutex mutex;
    std::condition_variable cv;
    unsigned done = 0;
};

TEST_P(Callbacks, MayCallEveryMember) {
    const LogLines log;
    open({});
    EXPECT_EQ(submit([&](const JobHandle& job) {
                  EXPECT_EQ(runner->wait(job, std::chrono::milliseconds(0)), StatusCode::SUCCESS);
                  Tensors in = allocate(*runner, TensorDirection::INPUT);
                  Tensors out = allocate(*runner, TensorDirection::OUTPUT);
                  EXPECT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
                  const JobHandle next = runner->execute_async(in, out);
                  EXPECT_EQ(next.status, StatusCode::SUCCESS);
                  EXPECT_EQ(runner->wait(next, forever), StatusCode::SUCCESS);
                  EXPECT_EQ(runner->wait(next, forever), StatusCode::INVALID_JOB_ID);
                  EXPECT_NE(std::any_cast<std::string>(runner->get_property("last_error")), "");
                  NpuTensorInfo info = in[0][0].get_info();
                  info.size_in_bytes *= 2;
                  const NpuTensor parent = runner->allocate_npu_tensor(info);
                  (void)runner->allocate_sub_tensor(parent, in[0][0].get_info(), 0);
                  EXPECT_EQ(runner->get_tensors_info(TensorDirection::INPUT, TensorType::HW).size(),
                            runner->get_num_input_tensors());
                  tell();
              }).status,
              StatusCode::SUCCESS);
    expect_done(1);
}

// "completion": two callbacks meet, each on a thread of its own; "submission": they never do.
TEST_P(Callbacks, RunAtTheSameTimeInCompletionOrderOnly) {
    open({});
    std::atomic<unsigned> inside{0}, most{0};
    const auto callback = [&](const JobHandle&) {
        const unsigned now = ++inside;
        for (unsigned seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        if (!GetParam()) {  // waits for the other
            std::unique_lock lock(mutex);
            ++done;
            cv.notify_all();
            cv.wait(lock, [&] { return done >= 2; });
        } else {
            tell();
        }
        --inside;
    };
    EXPECT_EQ(submit(callback).status, StatusCode::SUCCESS);
    EXPECT_EQ(submit(callback).status, StatusCode::SUCCESS);
    expect_done(2);
    runner.reset();  // waits for both
    EXPECT_EQ(most, GetParam() ? 1u : 2u);
}

TEST_P(Callbacks, UseNoMoreThreadsThanTheOptionSays) {
    Options options;
    options.max_concurrent_runs = 64;
    options.async_threadpool_depth = 3;
    open(options);
    std::set<std::thread::id> threads;
    for (int i = 0; i < 40; ++i)
        EXPECT_EQ(submit([&](const JobHandle&) {
                      const std::lock_guard lock(mutex);
                      threads.insert(std::this_thread::get_id());
                      ++done;
                      cv.notify_all();
                  }).status,
                  StatusCode::SUCCESS);
    expect_done(40);
    EXPECT_LE(threads.size(), GetParam() ? 1u : 3u);
    EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

TEST_P(Callbacks, ThatAreEmptyAreNone) {
    open({});
    const JobHandle job = submit(Runner::ExecuteAsyncCallback());
    EXPECT_EQ(runner->wait(job, forever), StatusCode::SUCCESS);
    EXPECT_EQ(std::any_cast<uint32_t>(runner->get_property("jobs_in_flight")), 0u);
}

std::string order_of(const testing::TestParamInfo<bool>& info) {
    return info.param ? "Submission" : "Completion";
}
INSTANTIATE_TEST_SUITE_P(Orders, Callbacks, testing::Bool(), order_of);

}  // namespace
