// SPDX-License-Identifier: Apache-2.0
// Many asynchronous runs from eight threads: no callback is lost or out of order, every result is
// right, memory stays. VARTML_TEST_RUNS sets how many (a release: 100000).
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "lib/run/vart/runner.h"
#include "tests/model/models.h"
#include "tests/support/fake_runner.h"
#include "tests/support/process_state.h"

namespace {
using namespace vart;
using namespace vartml::test;
using vartml::runtime::Options;
using vartml::runtime::Tensors;
using vartml::runtime::VaimlRunner;

constexpr unsigned num_threads = 8;

// y = -x, so that each result names its input.
vartml::artifact::CompiledModel negation() {
    return connect(make_model({make_partition("vaiml_par_0", parse_graph(R"(graph g
input %x : f32[1,3,4,5]
%y = Neg %x : f32[1,3,4,5]
output %y
)"))}));
}

class Stress : public testing::TestWithParam<bool> {
protected:
    void SetUp() override {
        Options options = cpu_views();
        options.max_concurrent_runs = 4;
        options.callbacks_in_submission_order = GetParam();
        runner = make_runner(negation(), options);
        ASSERT_TRUE(runner);
    }
    void on_callback(const JobHandle& job) {
        const unsigned before = inside.fetch_add(1);
        if (GetParam()) {
            // One at a time, in the order of the numbers.
            if (before != 0 || job.job_id != last_id + 1) ++out_of_order;
            last_id = job.job_id;
        }
        if (job.status != StatusCode::SUCCESS) ++wrong;
        inside.fetch_sub(1);
        ++callbacks;
    }
    void submit_runs(unsigned thread, size_t runs) {
        Tensors in = allocate(*runner, TensorDirection::INPUT);
        Tensors out = allocate(*runner, TensorDirection::OUTPUT);
        for (size_t i = 0; i < runs; ++i) {
            const auto value = static_cast<float>(i % 1000 * num_threads + thread);
            for (float& v : elements<float>(in[0][0])) v = value;
            JobHandle job;
            while ((job = runner->execute_async(in, out, [this](const JobHandle& done) {
                       on_callback(done);
                   })).status == StatusCode::RESOURCE_UNAVAILABLE)
                std::this_thread::yield();
            if (job.status != StatusCode::SUCCESS) ++wrong;
            // Some poll, some block.
            StatusCode status = StatusCode::JOB_PENDING;
            while (status == StatusCode::JOB_PENDING)
                status = runner->wait(job, std::chrono::milliseconds(i % 2 ? 1000 : 0));
            if (status != StatusCode::SUCCESS) ++wrong;
            for (const float v : elements<float>(out[0][0])) wrong += v != -value;
        }
    }
    void run_all(size_t runs) {
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < num_threads; ++t)
            threads.emplace_back([this, t, runs] { submit_runs(t, runs / num_threads); });
        for (auto& thread : threads) thread.join();
        submitted += runs / num_threads * num_threads;
        while (callbacks < submitted) std::this_thread::yield();
    }

    std::shared_ptr<VaimlRunner> runner;
    std::atomic<size_t> callbacks{0}, wrong{0}, out_of_order{0};
    std::atomic<unsigned> inside{0};
    std::atomic<uint32_t> last_id{0};
    size_t submitted = 0;
};

TEST_P(Stress, LosesNothing) {
    const size_t runs = number_from("VARTML_TEST_RUNS", 1000);
    run_all(800);
    const size_t before = resident_bytes();
    run_all(runs);
    const size_t after = resident_bytes();
    EXPECT_EQ(callbacks, submitted);
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(out_of_order, 0u);
    EXPECT_EQ(std::any_cast<uint64_t>(runner->get_property("jobs_completed")), submitted);
    EXPECT_EQ(std::any_cast<uint32_t>(runner->get_property("jobs_in_flight")), 0u);
    std::printf("%zu runs, %s order: %zu callbacks, resident %zu KiB before, %zu KiB after\n", runs,
                GetParam() ? "submission" : "completion", callbacks.load(), before / 1024,
                after / 1024);
    // A sanitizer's allocator keeps what was freed.
    if (!VARTML_SANITIZED) {
        EXPECT_LT(after, before + (4 << 20));
    }
}

INSTANTIATE_TEST_SUITE_P(Orders, Stress, testing::Bool(), [](const auto& info) {
    return std::string(info.param ? "Submission" : "Completion");
});

}  // namespace
