// SPDX-License-Identifier: Apache-2.0
// One runner shared by 16 threads that do everything at once; meant for ThreadSanitizer too.
#include <gtest/gtest.h>

#include <unistd.h>

#include <thread>

#include "lib/runtime/runner.h"
#include "tests/support/fake_runner.h"

namespace {
using namespace vart;
using namespace vartml::test;
using vartml::runtime::Tensors;

TEST(SharedRunner, GivesEveryThreadItsOwnResults) {
    FakeDevice device(3);
    auto options = cpu_views();
    options.max_concurrent_runs = 4;
    const auto runner = make_runner(picture_model(), options);
    constexpr int num_threads = 16, rounds = 60;
    std::vector<std::thread> threads;
    std::atomic<unsigned> callbacks{0}, with_callback{0};
    for (int t = 0; t < num_threads; ++t)
        threads.emplace_back([&, t] {
            for (int round = 0; round < rounds; ++round) {
                Tensors in = allocate(*runner, TensorDirection::INPUT);
                Tensors out = allocate(*runner, TensorDirection::OUTPUT);
                const auto value = static_cast<float>(t * 64 + round);  // at most 8 bits of it
                const float exact = static_cast<float>(static_cast<int>(value) & 255);
                for (float& v : elements<float>(in[0][0])) v = exact;
                if (round % 3 == 0) {
                    EXPECT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
                } else {
                    JobHandle job;
                    do {
                        job = round % 3 == 1 ? runner->execute_async(in, out)
                                             : runner->execute_async(
                                                   in, out, [&](const JobHandle&) { ++callbacks; });
                        if (job.status == StatusCode::RESOURCE_UNAVAILABLE)
                            std::this_thread::yield();
                    } while (job.status == StatusCode::RESOURCE_UNAVAILABLE);
                    if (round % 3 == 2) ++with_callback;
                    while (runner->wait(job, std::chrono::milliseconds(1)) ==
                           StatusCode::JOB_PENDING) {
                    }
                }
                for (const float v : elements<float>(out[0][0])) ASSERT_EQ(v, exact);
                (void)runner->get_property("conversions");
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(device.started(), unsigned{num_threads * rounds});
    while (callbacks < with_callback) std::this_thread::yield();
}

// Nothing stays behind: descriptors, threads, columns.
TEST(SharedRunner, LeavesNothingBehindWhenItGoes) {
    FakeDevice device;
    for (int i = 0; i < 200; ++i) {
        const auto runner = make_runner(picture_model());
        ASSERT_TRUE(runner);
        EXPECT_EQ(std::any_cast<uint32_t>(runner->get_property("start_column")), 0u);
        Tensors in = allocate(*runner, TensorDirection::INPUT);
        const int fd = in[0][0].export_buffer();
        ASSERT_GE(fd, 0);
        EXPECT_LT(fd, 64);
        close(fd);
    }
    EXPECT_EQ(device.alive, 0u);
}

}  // namespace
