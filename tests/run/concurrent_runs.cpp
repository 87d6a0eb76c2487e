// SPDX-License-Identifier: Apache-2.0
// Runs of one loaded program beside each other: steps and weights are shared, nothing of a run is.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <filesystem>
#include <thread>

#include "lib/run/exec/executor.h"
#include "lib/run/softnpu/softnpu.h"
#include "tests/model/models.h"
#include "tests/support/graphs.h"
#include "tests/support/run_once.h"

namespace vartml::device {
namespace {

// A step of each kind that keeps something between runs: a oneDNN primitive, a resize with rows of
// its own, operators of lib/graph, of which the last rejects an index that is too large.
constexpr char kinds[] = R"(graph g
input %x : f32[1,20,16,16]
input %i : i64[1]
%p = MaxPool %x {ceil_mode=0, dilations=[1,1], kernel_shape=[2,2], pads=[0,0,0,0], storage_order=0, strides=[2,2]} : f32[1,20,8,8]
%r = Resize %p {antialias=0, coordinate_transformation_mode="align_corners", cubic_coeff_a=-0.75, exclude_outside=0, extrapolation_value=0.0, mode="linear", nearest_mode="floor", scales=f[1.0,1.0,2.0,2.0], sizes=[1,20,16,16]} : f32[1,20,16,16]
%e = Erf %r : f32[1,20,16,16]
%y = Gather %e, %i {axis=0} : f32[1,20,16,16]
output %y
)";

std::shared_ptr<const Program> program(const char* text = kinds) {
    auto program = std::make_shared<Program>();
    program->name = "test";
    program->target = "softnpu-1";
    program->graph = graph::must_parse(text);
    for (auto [ids, infos] : {std::pair(&program->graph.inputs, &program->inputs),
                              std::pair(&program->graph.outputs, &program->outputs)})
        for (const graph::ValueId id : *ids) {
            infos->push_back(test::border_tensor(program->graph, id));
            infos->back().hw = infos->back().cpu;
        }
    return program;
}

constexpr size_t elements = 20 * 16 * 16;

// One caller: its input, its result.
struct Caller {
    explicit Caller(float seed, int64_t index, unsigned slot = 0)
        : index(index), slot(slot), x(elements), y(elements) {
        for (size_t k = 0; k < elements; ++k) x[k] = seed + static_cast<float>(k % 97) / 97;
    }
    Result<void> run(Executable& executable) {
        const void* const in[] = {x.data(), &index};
        void* const out[] = {y.data()};
        return test::run_once(executable, in, out, slot);
    }
    int64_t index;
    unsigned slot;
    std::vector<float> x, y;
};

TEST(ConcurrentRuns, GiveEachCallerItsOwnResultAndItsOwnError) {
    auto executable = softnpu_device().load(
        program(), {.numerics = Numerics::f32, .threads = 2, .concurrent_runs = 3});
    ASSERT_TRUE(executable) << executable.error().message;
    Caller callers[] = {Caller(-1, 0, 0), Caller(0.5F, 0, 1), Caller(0, 7, 2)};
    for (Caller& caller : callers) (void)caller.run(**executable);
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (Caller& caller : callers)
        threads.emplace_back([&executable, &caller, &wrong] {
            const std::vector<float> alone = caller.y;
            for (int round = 0; round < 300; ++round) {
                std::ranges::fill(caller.y, 0.0F);
                const bool done = caller.run(**executable).has_value();
                if (done != (caller.index == 0) || (done && caller.y != alone)) ++wrong;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

TEST(FramesOfARun, GiveTheirOwnResultsAndTheFirstError) {
    auto executable = softnpu_device().load(
        program(), {.numerics = Numerics::f32, .threads = 2, .concurrent_runs = 1, .batch = 2});
    ASSERT_TRUE(executable) << executable.error().message;
    ASSERT_EQ((*executable)->frames_at_once(), 2u);
    Caller good(-1, 0), other(0.5F, 0), bad(0, 7);
    const auto run_both = [&](Caller& a, Caller& b) {
        const void* const in[2][2] = {{a.x.data(), &a.index}, {b.x.data(), &b.index}};
        void* const out[2][1] = {{a.y.data()}, {b.y.data()}};
        const Frame frames[] = {{in[0], out[0]}, {in[1], out[1]}};
        return (*executable)->run({.frames = frames});
    };
    ASSERT_TRUE(good.run(**executable));
    ASSERT_TRUE(other.run(**executable));
    const std::vector<float> want = good.y, want_other = other.y;
    ASSERT_NE(want, want_other);
    good.y.assign(elements, 0);
    other.y.assign(elements, 0);
    ASSERT_TRUE(run_both(other, good));
    EXPECT_EQ(good.y, want);
    EXPECT_EQ(other.y, want_other);
    const auto failed = run_both(good, bad);
    ASSERT_FALSE(failed);
    EXPECT_NE(failed.error().message.find("'y'"), std::string::npos) << failed.error().message;
    EXPECT_TRUE(run_both(good, other));  // the error of a run before is gone
}

size_t threads_of_this_process() {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

// Of a thread that ran before, oneDNN would else think that it may start threads of its own, which
// then fight with ours for the processors.
TEST(HelpersOfARun, WorkOnTheThreadsOfTheExecutorAlone) {
    // Many steps, so that a helper that must wake up first finds some left.
    std::string text = "graph g\ninput %x : f32[1,64,128,128]\n", value = "x";
    for (int i = 0; i < 10; ++i) {
        const std::string next = i < 9 ? std::to_string(i) : "y";
        text += "%" + next + " = AveragePool %" + value +
                " {ceil_mode=0, count_include_pad=0, dilations=[1,1], kernel_shape=[3,3], "
                "pads=[1,1,1,1], strides=[1,1]} : f32[1,64,128,128]\n";
        value = next;
    }
    Executor executor("test", 2);  // outlives what runs in it
    auto executable =
        softnpu_device().load(program((text + "output %y\n").c_str()),
                              {.numerics = Numerics::f32, .threads = 2, .concurrent_runs = 2});
    ASSERT_TRUE(executable) << executable.error().message;
    const std::vector<float> x(64 * 128 * 128, 1);
    std::vector<float> y[2] = {x, x};
    const auto run = [&](size_t caller) {
        const void* const in[] = {x.data()};
        void* const out[] = {y[caller].data()};
        EXPECT_TRUE(test::run_once(**executable, in, out, static_cast<unsigned>(caller)));
    };
    const size_t before = threads_of_this_process();
    std::barrier both(2);
    const auto beside_each_other = [&](size_t caller) {
        executor.call([&, caller] {
            both.arrive_and_wait();
            run(caller);
        });
    };
    {
        const std::jthread first([&] { beside_each_other(0); });
        const std::jthread second([&] { beside_each_other(1); });
    }
    for (int round = 0; round < 50; ++round) executor.call([&] { run(0); });
    EXPECT_EQ(threads_of_this_process(), before);
}

}  // namespace
}  // namespace vartml::device
