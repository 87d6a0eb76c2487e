// SPDX-License-Identifier: Apache-2.0
// One runner shared by 16 threads that do everything at once; meant for ThreadSanitizer too.
// VARTML_TEST_SECONDS sets how long (a release: 60).
#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <thread>

#include "lib/run/vart/runner.h"
#include "tests/model/models.h"
#include "tests/support/fake_runner.h"
#include "tests/support/process_state.h"

namespace {
using namespace vart;
using namespace vartml::test;
using vartml::runtime::Tensors;
using vartml::runtime::VaimlRunner;

constexpr int num_threads = 16, fewest_rounds = 40;

// What each thread does with the runner; `sign`: what the model multiplies with.
class Mixer {
public:
    Mixer(VaimlRunner& runner, float sign) : runner_(runner), sign_(sign) {}

    void run() {
        const auto end = std::chrono::steady_clock::now() +
                         std::chrono::seconds(number_from("VARTML_TEST_SECONDS", 0));
        std::vector<std::thread> threads;
        for (int t = 0; t < num_threads; ++t)
            threads.emplace_back([this, t, end] {
                for (int round = 0; round < fewest_rounds || std::chrono::steady_clock::now() < end;
                     ++round)
                    if (!run_once(t, round)) return;
            });
        for (auto& thread : threads) thread.join();
        while (callbacks < with_callback) std::this_thread::yield();
    }

    std::atomic<unsigned> callbacks{0}, with_callback{0}, runs{0};

private:
    // Tensors of its own: allocated, sub-tensors, or copies of those.
    Tensors tensors(TensorDirection direction, int round) {
        Tensors whole = allocate(runner_, direction);
        if (round % 4 != 0) return whole;
        NpuTensorInfo large = whole[0][0].get_info();
        const size_t size = large.size_in_bytes;
        large.size_in_bytes = 2 * size;
        const NpuTensor parent = runner_.allocate_npu_tensor(large);
        return {{runner_.allocate_sub_tensor(parent, whole[0][0].get_info(), size)}};
    }
    void query(int round) {
        (void)runner_.get_property(round % 2 ? "conversions" : "last_error");
        (void)runner_.get_tensor_info_by_name("x", TensorType::CPU);
        (void)runner_.get_quant_parameters("y");
        if (round % 8 == 0) {
            Tensors none;
            EXPECT_EQ(runner_.execute(none, none), StatusCode::INVALID_INPUT);
        }
    }
    JobHandle submit(const Tensors& in, Tensors& out, bool calls_back) {
        for (;;) {
            const JobHandle job =
                calls_back
                    ? runner_.execute_async(in, out, [this](const JobHandle&) { ++callbacks; })
                    : runner_.execute_async(in, out);
            if (job.status != StatusCode::RESOURCE_UNAVAILABLE) return job;
            std::this_thread::yield();
        }
    }
    bool run_once(int thread, int round) {
        Tensors in = tensors(TensorDirection::INPUT, round);
        Tensors out = tensors(TensorDirection::OUTPUT, round);
        const auto exact = static_cast<float>((thread * 64 + round) & 255);  // 8 bits: also in bf16
        for (float& v : elements<float>(in[0][0])) v = exact;
        StatusCode status;
        if (round % 3 == 0) {
            status = runner_.execute(in, out);
        } else {
            with_callback += round % 3 == 2;
            const JobHandle job = submit(in, out, round % 3 == 2);
            while ((status = runner_.wait(job, std::chrono::milliseconds(1))) ==
                   StatusCode::JOB_PENDING) {
            }
        }
        ++runs;
        EXPECT_EQ(status, StatusCode::SUCCESS);
        query(round);
        for (const float v : elements<float>(out[0][0])) {
            EXPECT_EQ(v, sign_ * exact);
            if (v != sign_ * exact) return false;
        }
        return true;
    }

    VaimlRunner& runner_;
    const float sign_;
};

TEST(SharedRunner, GivesEveryThreadItsOwnResults) {
    const LogLines log;
    FakeDevice device(3);
    auto options = cpu_views();
    options.max_concurrent_runs = 4;
    const auto runner = make_runner(picture_model(), options);
    ASSERT_TRUE(runner);
    Mixer mixer(*runner, 1);
    mixer.run();
    EXPECT_EQ(device.started(), mixer.runs);
}

// However many others wait: a call returns when its own run is done.
TEST(SharedRunner, HasNoCallRunForOthers) {
    const LogLines log;
    FakeDevice device(4);
    device.set_run([](unsigned, std::span<const void* const>, std::span<void* const>) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return vartml::Result<void>();
    });
    auto options = cpu_views();
    options.max_concurrent_runs = 1;
    const auto runner = make_runner(picture_model(), options);
    ASSERT_TRUE(runner);
    constexpr int callers = 4, calls = 25;
    std::atomic<bool> ends{false};
    std::atomic<int> returned{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < callers; ++t)
        threads.emplace_back([&] {
            Tensors in = allocate(*runner, TensorDirection::INPUT);
            Tensors out = allocate(*runner, TensorDirection::OUTPUT);
            for (int i = 0; i < calls || !ends; ++i) {
                EXPECT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
                if (i + 1 == calls && ++returned == callers) ends = true;
            }
        });
    // A caller that ran for the others would not come to its 25th call while they go on; if one
    // never did, this would not end.
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(returned, callers);
    EXPECT_LT(device.started(), unsigned{callers} * calls * 4);
}

TEST(SharedRunner, GivesEveryThreadItsOwnResultsOfTheSoftwareNpu) {
    const LogLines log;
    auto partition = make_partition("vaiml_par_0", parse_graph(R"(graph g
input %x : f32[1,3,16,16]
const %w : f32[3,3,1,1] = {-1, 0, 0, 0, -1, 0, 0, 0, -1}
%c = Conv %x, %w, _ {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,3,16,16]
%y = Abs %c : f32[1,3,16,16]
output %y
)"));
    auto options = cpu_views();
    options.max_concurrent_runs = 3;
    options.callbacks_in_submission_order = false;
    const auto runner = make_runner(connect(make_model({std::move(partition)})), options);
    ASSERT_TRUE(runner);
    Mixer(*runner, 1).run();
}

}  // namespace
