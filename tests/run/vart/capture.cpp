// SPDX-License-Identifier: Apache-2.0
// What the jobs of a runner leave in a capture sink, by level, and what they do not.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <thread>

#include "tests/support/captured_runner.h"

namespace {
thread_local size_t clock_reads = 0;
}

// Calls of the program go here before the C library's own.
extern "C" int clock_gettime(clockid_t clock, struct timespec* time) noexcept {
    ++clock_reads;
    return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
}

namespace {
using namespace vart;
using namespace vartml::test;
using vartml::profiling::Capture;
using vartml::profiling::not_captured;
using vartml::profiling::ThreadCapture;
using vartml::runtime::Options;
using vartml::runtime::Tensors;
namespace field = vartml::profiling::field;

// NPU, CPU, NPU.
vartml::artifact::CompiledModel mixed_model() {
    const std::string shape = "[1,3,8,8]";
    auto model = connect(
        make_model({make_partition("vaiml_par_0", parse_graph(chain("x", "a", 3, shape))),
                    make_partition("vaiml_cpu_subgraph_0", parse_graph(chain("a", "b", 2, shape))),
                    make_partition("vaiml_par_1", parse_graph(chain("b", "y", 2, shape)))}));
    model.stats_level = 100;
    return model;
}

// ---- levels
// --------------------------------------------------------------------------------------

struct Level {
    unsigned asked, compiled;
    bool has_waits, has_operators;
    unsigned captured;
};
const Level levels[] = {
    {40, 100, false, false, 40}, {49, 100, false, false, 49},
    {50, 100, true, false, 50},  {60, 100, true, false, 60},  // acts as 50
    {70, 100, true, true, 70},   {70, 70, true, true, 70},
    {70, 50, true, false, 50},  // not more than the model was compiled for
    {70, 40, false, false, 40},
};
class CaptureLevel : public testing::TestWithParam<Level> {};

TEST_P(CaptureLevel, HasExactlyWhatItsRowSaysAndAReasonForTheRest) {
    const Level& level = GetParam();
    Profiled p(npu_model(3, "[1,3,8,8]", level.compiled), level.asked);
    ASSERT_TRUE(p.runner);
    const Capture capture = p.execute();
    EXPECT_EQ(capture.captured_level, level.captured);
    ASSERT_FALSE(capture.threads.empty());
    for (const ThreadCapture& t : capture.threads) {
        EXPECT_GT(t.start, 0U);
        EXPECT_GE(t.end, t.start);
        EXPECT_NE(t.cpu_ns, not_captured);
        EXPECT_NE(t.activate_ns, not_captured);
        EXPECT_EQ(t.ops.size(), level.has_operators ? 7U : 0U);
        EXPECT_EQ(t.is_stamped, level.has_operators);
    }
    EXPECT_GT(capture.threads[0].activate_ns, 0U);
    EXPECT_EQ(capture.ports.size(), level.has_waits ? 2U : 0U);
    EXPECT_EQ(capture.doorbells.size(), level.has_waits ? 1U : 0U);
    EXPECT_EQ(reason_of(capture, field::port_waits).empty(), level.has_waits);
    EXPECT_EQ(reason_of(capture, field::doorbells).empty(), level.has_waits);
    EXPECT_EQ(reason_of(capture, field::operators).empty(), level.has_operators);
    EXPECT_FALSE(reason_of(capture, field::hand_overs).empty());  // one partition
    EXPECT_FALSE(reason_of(capture, field::pmu_of_operators).empty());
    EXPECT_FALSE(reason_of(capture, field::frames).empty());
    EXPECT_TRUE(capture.has_host);
    EXPECT_TRUE(std::ranges::is_sorted(capture.host));
    EXPECT_GT(capture.host[0], 0U);
    EXPECT_GT(capture.record_count, 9U);
    EXPECT_GT(capture.record_cost_ps, 0U);
    EXPECT_EQ(capture.lost_records, 0U);
    EXPECT_EQ(capture.bytes_copied, 2 * 768U);
    EXPECT_EQ(capture.queue_depth, 2U);
}
INSTANTIATE_TEST_SUITE_P(Capture, CaptureLevel, testing::ValuesIn(levels));

// A camera that connects again may get the index of one that went.
TEST(Capture, NamesTheStreamThatHasTheIndexNow) {
    Profiled p(npu_model(3), 50);
    const auto name_of = [&](uint32_t stream) {
        const vartml::TraceFrame frame{vartml::FrameKey(stream, 5), 5, 1000};
        const vartml::FrameScope scope({&frame, 1});
        const Capture capture = p.execute();
        EXPECT_EQ(capture.streams.size(), 1U);
        return capture.streams.empty() ? "" : capture.streams[0].id;
    };
    uint32_t index;
    {
        const vartml::TraceStream first("the first camera");
        index = first.index();
        EXPECT_EQ(name_of(index), "the first camera");
    }
    EXPECT_EQ(name_of(index), "the first camera") << "on its way";
    std::vector<vartml::TraceStream> later;
    while (later.empty() || later.back().index() != index) {
        ASSERT_LT(later.size(), 200U);
        vartml::TraceStream("camera " + std::to_string(later.size()));  // comes and goes
        later.emplace_back("camera that stays " + std::to_string(later.size()));
    }
    EXPECT_EQ(name_of(index), "camera that stays " + std::to_string(later.size() - 1));
}

TEST(Capture, SaysWhichLevelTheModelNeeds) {
    Profiled p(npu_model(3, "[1,3,8,8]", 40), 70);
    EXPECT_EQ(reason_of(p.execute(), field::operators),
              "the model was compiled with --stats-level=40; compile it again with 70");
}

TEST(Capture, WithoutADescriptorHasNoOperatorsAndSaysSo) {
    Profiled p(npu_model(3), std::make_shared<KeepingSink>(70), cpu_views(), false);
    const Capture capture = p.execute();
    EXPECT_EQ(capture.captured_level, 50);
    EXPECT_EQ(reason_of(capture, field::operators),
              "the model has no operator descriptor; compile it again with --stats-level=70");
}

TEST(Capture, OfAModelForNoneIsNeverTakenAndTheLogSaysWhy) {
    LogLines log;
    Profiled p(npu_model(1, "[1,3,8,8]", 39), 70);
    EXPECT_EQ(p.runner->execute(p.in, p.out), StatusCode::SUCCESS);
    EXPECT_TRUE(p.sink->captures().empty());
    const auto lines = log.take();
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_NE(lines[0].second.find("--stats-level=39"), std::string::npos) << lines[0].second;
}

// ---- operators
// -------------------------------------------------------------------------------------

TEST(CaptureOperators, FollowEachOtherInsideTheirThread) {
    Profiled p(npu_model(5), 70, one_thread());
    const Capture capture = p.execute();
    ASSERT_EQ(capture.threads.size(), 1U);
    const ThreadCapture& t = capture.threads[0];
    ASSERT_EQ(t.ops.size(), 11U);
    uint64_t last = t.start;
    for (const auto& op : t.ops) {
        EXPECT_GE(op.start, last);
        EXPECT_GE(op.end, op.start);
        last = op.end;
    }
    EXPECT_LE(last, t.end);
    EXPECT_EQ(capture.host[5], t.start);
    EXPECT_GE(capture.host[6], t.end);
}

TEST(CaptureOperators, OfHelpersEndInABarrierThatIsTheSameForAll) {
    if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one processor: nobody helps";
    Options options = cpu_views();
    options.threads = 4;
    Profiled p(npu_model(8, "[1,16,256,256]"), 70, options);
    bool helped = false;
    for (int round = 0; round < 200 && !helped; ++round) {
        const Capture capture = p.execute();
        for (size_t o = 1; o + 1 < capture.threads[0].ops.size(); o += 2) {
            uint64_t complete = 0;
            for (const auto& t : capture.threads) complete = std::max(complete, t.ops[o].end);
            for (const auto& t : capture.threads) {
                if (t.ops[o].end == 0) continue;
                EXPECT_EQ(t.ops[o + 1].start, t.ops[o].end);
                EXPECT_EQ(t.ops[o + 1].end, complete);
                EXPECT_LE(t.ops[o].end, t.end);
                helped = helped || t.thread > 0;
            }
        }
    }
    EXPECT_TRUE(helped);
}

TEST(CaptureOperators, OfCpuPartitionsHaveAGroupOfTheirOwn) {
    Profiled p(mixed_model(), 70, one_thread());
    const Capture capture = p.execute();
    ASSERT_EQ(capture.threads.size(), 2U);
    const ThreadCapture &npu = capture.threads[0], &cpu = capture.threads[1];
    EXPECT_EQ(npu.group, 0);
    EXPECT_EQ(cpu.group, 1);
    EXPECT_NE(npu.thread, cpu.thread);
    EXPECT_EQ(npu.os_tid, cpu.os_tid);
    ASSERT_EQ(npu.ops.size(), 7U + 5U);
    ASSERT_EQ(cpu.ops.size(), 5U);
    // The NPU waits in the sync of its second partition while the CPU works.
    const auto& sync = npu.ops[7];
    EXPECT_GE(sync.start, npu.ops[6].end);
    EXPECT_LE(sync.start, cpu.ops[1].start);
    EXPECT_GE(sync.end, cpu.ops[4].end);
    EXPECT_LE(sync.end, npu.ops[8].start);
    ASSERT_EQ(capture.semaphores.size(), 2U);
    EXPECT_EQ(capture.semaphores[0].thread, cpu.thread);
    EXPECT_EQ(capture.semaphores[1].thread, npu.thread);
    EXPECT_LE(capture.semaphores[0].start, capture.semaphores[0].end);
    EXPECT_LE(capture.semaphores[0].end, capture.semaphores[1].start);
    EXPECT_TRUE(reason_of(capture, field::hand_overs).empty());
}

TEST(CaptureOperators, ThatTheDescriptorDoesNotListAreNamed) {
    auto model = npu_model(2);
    auto descriptor = descriptor_of(model);
    descriptor.cores[0].groups[0].ops[1].name = "another";
    add_descriptor(model, descriptor);
    Profiled p(std::move(model), std::make_shared<KeepingSink>(70), one_thread(), false);
    const Capture capture = p.execute();
    EXPECT_EQ(capture.threads[0].ops[1].start, 0U);
    EXPECT_NE(capture.threads[0].ops[3].start, 0U);
    EXPECT_NE(reason_of(capture, field::unlisted_operators).find("lists no operator for"),
              std::string::npos);
}

TEST(CaptureOperators, OfADeviceThatStampsNoneAreMissing) {
    FakeDevice device;
    auto model = picture_model();
    model.stats_level = 70;
    Profiled p(std::move(model), 70);
    const Capture capture = p.execute();
    EXPECT_EQ(reason_of(capture, field::operators), "the device reports none");
    EXPECT_EQ(reason_of(capture, field::cpu_time), "the device reports none");
    ASSERT_EQ(capture.threads.size(), 1U);
    EXPECT_EQ(capture.threads[0].cpu_ns, not_captured);
    EXPECT_TRUE(capture.threads[0].ops.empty());
    EXPECT_GE(capture.threads[0].end, capture.threads[0].start);
}

TEST(CaptureOperators, OfABatchInTurnsAreThoseOfTheFirst) {
    auto model = npu_model(2);
    model.actual_batch_size = model.desired_batch_size = 3;
    Profiled p(std::move(model), 70, one_thread());
    const Capture capture = p.execute();
    EXPECT_FALSE(reason_of(capture, field::later_frames).empty());
    const ThreadCapture& t = capture.threads[0];
    EXPECT_LT(t.ops.back().end, t.end);
    EXPECT_EQ(capture.bytes_copied, 3 * 2 * 768U);
}

// ---- clock and counts
// ------------------------------------------------------------------------------

size_t reads_of(size_t nodes, unsigned level) {
    Profiled p(npu_model(nodes), level, one_thread());
    EXPECT_EQ(p.runner->execute(p.in, p.out), StatusCode::SUCCESS);
    const size_t before = clock_reads;
    EXPECT_EQ(p.runner->execute(p.in, p.out), StatusCode::SUCCESS);
    return clock_reads - before;
}

TEST(CaptureClock, IsReadAsOftenForTenOperatorsAsForAThousandBelowLevel70) {
    for (const unsigned level : {40U, 50U}) {
        const size_t reads = reads_of(10, level);
        EXPECT_GT(reads, 0U);
        EXPECT_LE(reads, 16U);
        EXPECT_EQ(reads_of(1000, level), reads) << level;
    }
    EXPECT_GT(reads_of(1000, 70), 2000U);
}

TEST(CaptureClock, IsNotReadWhenNobodyAsks) {
    const auto runner = make_runner(npu_model(10), one_thread());
    Tensors in = allocate(*runner, TensorDirection::INPUT);
    Tensors out = allocate(*runner, TensorDirection::OUTPUT);
    ASSERT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
    const size_t before = clock_reads;
    ASSERT_EQ(runner->execute(in, out), StatusCode::SUCCESS);
    EXPECT_EQ(clock_reads, before);
}

TEST(CaptureClock, IsReadTwiceForAnInferenceThatTheSinkDoesNotWant) {
    EXPECT_EQ(reads_of(10, 0), 2U);
}

// ---- jobs
// ------------------------------------------------------------------------------------------

TEST(CaptureJobs, OnlyThoseThatTheSinkWantsAreTakenAndAllAreCounted) {
    Profiled p(npu_model(1), std::make_shared<KeepingSink>(
                                 [](uint64_t index) { return index % 3 == 1 ? 50U : 0U; }));
    for (int i = 0; i < 6; ++i) ASSERT_EQ(p.runner->execute(p.in, p.out), StatusCode::SUCCESS);
    const auto captures = p.sink->captures();
    ASSERT_EQ(captures.size(), 2U);
    EXPECT_EQ(captures[0].inference_index, 1U);
    EXPECT_EQ(captures[1].inference_index, 4U);
}

TEST(CaptureJobs, WaitNoLongerThanSinceTheInferenceBeforeOnTheirCore) {
    Profiled p(npu_model(1), 50, one_thread());
    Capture first = p.execute(), second = p.execute();
    EXPECT_TRUE(first.is_first_of_core);
    // Another core where the first still ended what it did before.
    while (second.threads[0].core != first.threads[0].core)
        first = std::exchange(second, p.execute());
    EXPECT_FALSE(second.is_first_of_core);
    EXPECT_EQ(second.ports[0].wait_ns, second.host[4] - first.host[6]);
    EXPECT_EQ(second.ports[1].wait_ns, second.host[6] - second.threads[0].end);
}

TEST(CaptureJobs, AreTakenAfterWaitAndAfterTheCallback) {
    Profiled p(npu_model(1), 50);
    const auto job = p.runner->execute_async(p.in, p.out);
    ASSERT_EQ(p.runner->wait(job, std::chrono::milliseconds::max()), StatusCode::SUCCESS);
    ASSERT_EQ(p.sink->captures().size(), 1U);
    EXPECT_TRUE(std::ranges::is_sorted(p.sink->captures()[0].host));
    std::atomic<bool> called{false};
    ASSERT_EQ(p.runner->execute_async(p.in, p.out, [&](const JobHandle&) { called = true; }).status,
              StatusCode::SUCCESS);
    const auto captures = p.sink->wait_for(2);
    EXPECT_TRUE(called);
    EXPECT_TRUE(std::ranges::is_sorted(captures[1].host));
}

TEST(CaptureJobs, ThatNobodyWaitsForAreTakenAllTheSame) {
    const auto sink = std::make_shared<KeepingSink>(50U);
    constexpr size_t jobs = 200;  // more than what is kept for a wait
    {
        Profiled p(npu_model(1), sink);
        for (size_t i = 0; i < jobs;)
            if (p.runner->execute_async(p.in, p.out).status == StatusCode::SUCCESS)
                ++i;
            else
                std::this_thread::yield();
    }
    const auto captures = sink->captures();
    ASSERT_EQ(captures.size(), jobs);
    for (const Capture& capture : captures) {
        EXPECT_EQ(capture.host[8], not_captured);
        EXPECT_FALSE(reason_of(capture, field::released).empty());
    }
}

TEST(CaptureJobs, ThatFailAreNotTaken) {
    FakeDevice device;
    device.set_run([](unsigned run, auto, auto) -> vartml::Result<void> {
        if (run == 0) return vartml::Error{vartml::ErrorCode::device, "broken"};
        return {};
    });
    Profiled p(picture_model(), 40);
    EXPECT_EQ(p.runner->execute(p.in, p.out), StatusCode::RUNTIME_ERROR);
    EXPECT_TRUE(p.sink->captures().empty());
    EXPECT_EQ(p.execute().inference_index, 1U);
}

TEST(CaptureJobs, SeveralAtOnceKeepTheirStampsApart) {
    Options options = cpu_views();
    options.max_concurrent_runs = 8;
    Profiled p(npu_model(6, "[1,8,64,64]"), 70, options);
    constexpr size_t callers = 4, rounds = 50;
    std::vector<std::thread> threads;
    for (size_t c = 0; c < callers; ++c)
        threads.emplace_back([&] {
            Tensors in = allocate(*p.runner, TensorDirection::INPUT);
            Tensors out = allocate(*p.runner, TensorDirection::OUTPUT);
            for (size_t i = 0; i < rounds; ++i)
                EXPECT_EQ(p.runner->execute(in, out), StatusCode::SUCCESS);
        });
    for (auto& thread : threads) thread.join();
    const auto captures = p.sink->captures();
    ASSERT_EQ(captures.size(), callers * rounds);
    std::vector<bool> seen(captures.size());
    for (const Capture& capture : captures) {
        seen[capture.inference_index] = true;
        EXPECT_TRUE(std::ranges::is_sorted(capture.host));
        for (const auto& t : capture.threads)
            for (const auto& op : t.ops) {
                if (op.end == 0) continue;
                EXPECT_GE(op.start, t.start);
                EXPECT_LE(op.end, capture.host[6]);
            }
    }
    EXPECT_TRUE(std::ranges::all_of(seen, [](bool s) { return s; }));
}

}  // namespace
