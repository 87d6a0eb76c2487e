// SPDX-License-Identifier: Apache-2.0
// Counters of the processor in captures, and bytes computed from the tensors.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "lib/base/file.h"
#include "lib/base/test_seams.h"
#include "lib/trace/pmu.h"
#include "tests/support/captured_runner.h"

namespace {
using namespace vart;
using namespace vartml::test;
using vartml::profiling::Capture;
using vartml::profiling::not_captured;
using vartml::profiling::ThreadCapture;
using vartml::runtime::Options;
namespace field = vartml::profiling::field;

int refuse(perf_event_attr&, int) {
    errno = EACCES;
    return -1;
}

// Counters of the thread's CPU time, which every kernel has.
int open_clock(perf_event_attr& attributes, int group) {
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.config = PERF_COUNT_SW_TASK_CLOCK;
    return static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, group, 0));
}

// The thread keeps its counters: a recipe is opened in the way of the first test that asks for it.
class CapturePmu : public testing::Test {
protected:
    ~CapturePmu() override { vartml::test_seams.open_counter = nullptr; }
    // On a thread that has no counters yet.
    Capture capture(const vartml::profiling::Pmu& pmu, unsigned level,
                    int (*open)(perf_event_attr&, int), bool ddr_stats = false) {
        vartml::test_seams.open_counter = open;
        auto model = npu_model(3);
        auto descriptor = descriptor_of(model);
        descriptor.pmu = pmu;
        descriptor.ddr_stats = ddr_stats;
        add_descriptor(model, descriptor);
        Profiled p(std::move(model), std::make_shared<KeepingSink>(level), one_thread(), false);
        Capture result;
        std::thread([&] { result = p.execute(); }).join();
        return result;
    }
};

TEST_F(CapturePmu, RefusedKeepsItsPlaceWithTheReason) {
    const Capture c = capture({"AxiRdWr", {}}, 70, refuse);
    ASSERT_EQ(c.pmu_events.size(), 4U);
    EXPECT_EQ(c.pmu_events[1].name, "LLC-load-misses");
    EXPECT_EQ(c.pmu_events[1].config, 0x010002U);
    EXPECT_EQ(c.pmu_events[1].perf_type, 3U);
    for (const auto& event : c.pmu_events) {
        EXPECT_EQ(event.status, EACCES);
        EXPECT_EQ(reason_of(c, event.name), vartml::profiling::pmu_reason(EACCES));
    }
    const ThreadCapture& t = c.threads[0];
    for (const uint64_t value : t.pmu.values) EXPECT_EQ(value, not_captured);
    EXPECT_EQ(t.pcycles, not_captured);
    EXPECT_TRUE(t.pcycles_of_ops.empty());
    EXPECT_FALSE(reason_of(c, field::pcycles).empty());
    EXPECT_NE(t.ops[1].start, 0U);
}

TEST_F(CapturePmu, CountsPerThreadAndFromLevel100PerOperator) {
    const Capture c = capture({"", {0x1c2, 0xd1}}, 100, open_clock);
    if (c.pmu_events.empty() || c.pmu_events[0].status != 0) GTEST_SKIP() << reason_of(c, "r1c2");
    ASSERT_EQ(c.pmu_events.size(), 2U);
    EXPECT_EQ(c.pmu_events[0].name, "r1c2");
    EXPECT_EQ(c.pmu_events[1].config, 0xd1U);
    const ThreadCapture& t = c.threads[0];
    EXPECT_GT(t.pmu.values[0], 0U);
    EXPECT_EQ(t.pmu.values[2], not_captured);
    ASSERT_EQ(t.pmu_of_ops.size(), t.ops.size());
    ASSERT_EQ(t.pcycles_of_ops.size(), t.ops.size());
    uint64_t events = 0, cycles = 0;
    for (size_t o = 1; o < t.ops.size(); o += 2) {
        events += t.pmu_of_ops[o][0];
        cycles += t.pcycles_of_ops[o];
        EXPECT_EQ(t.pcycles_of_ops[o + 1], not_captured);  // a barrier
    }
    EXPECT_GT(events, 0U);
    EXPECT_LE(events, t.pmu.values[0]);
    EXPECT_LE(cycles, t.pcycles);
}

TEST_F(CapturePmu, OfARecipeThatThereIsNoUnitForSaysSo) {
    const Capture c = capture({"HmxMacs", {}}, 100, refuse);
    EXPECT_TRUE(c.pmu_events.empty());
    EXPECT_EQ(reason_of(c, field::pmu),
              "HmxMacs: the software NPU has no matrix unit; MACs are computed from shapes, see "
              "layers.csv");
    EXPECT_FALSE(reason_of(c, field::pmu_of_operators).empty());
}

TEST_F(CapturePmu, FiguresOfTheThreadNeedNoPermission) {
    const Capture c = capture({"KernelUtil", {}}, 40, refuse);
    ASSERT_EQ(c.pmu_events.size(), 5U);
    EXPECT_EQ(c.pmu_events[3].name, "context-switches");
    EXPECT_EQ(c.pmu_events[3].status, 0);
    EXPECT_NE(c.threads[0].pmu.values[3], not_captured);
    EXPECT_NE(c.threads[0].pmu.values[4], not_captured);
    EXPECT_EQ(c.threads[0].pmu.values[0], not_captured);
}

TEST_F(CapturePmu, OfTheLastCacheAreTheMeasuredBytes) {
    const Capture c = capture({"AxiRdWr", {}}, 40, open_clock, true);
    if (c.pmu_events.empty() || c.pmu_events[1].status != 0)
        GTEST_SKIP() << reason_of(c, "LLC-load-misses");
    ASSERT_EQ(c.traffic.size(), 2U);
    EXPECT_FALSE(c.traffic[0].is_measured);
    ASSERT_TRUE(c.traffic[1].is_measured);
    uint64_t reads = 0, writes = 0;
    for (const ThreadCapture& thread : c.threads) {
        reads += thread.pmu.values[1];
        writes += thread.pmu.values[3];
    }
    EXPECT_EQ(c.traffic[1].read_bytes, 64 * reads);
    EXPECT_EQ(c.traffic[1].write_bytes, 64 * writes);
}

TEST_F(CapturePmu, ThatAreRefusedLeaveTheComputedBytesAlone) {
    const Capture c = capture({"AxiRd", {}}, 40, refuse, true);
    ASSERT_EQ(c.traffic.size(), 1U);
    EXPECT_FALSE(c.traffic[0].is_measured);
}

// Programs that the application starts get none of them.
TEST(PmuCounters, EndWithTheProgram) {
    perf_event_attr attributes{};
    attributes.size = sizeof attributes;
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.config = PERF_COUNT_SW_TASK_CLOCK;
    attributes.exclude_kernel = attributes.exclude_hv = 1;
    const vartml::Fd counter(vartml::profiling::open_counter(attributes, -1));
    if (!counter) GTEST_SKIP() << vartml::profiling::pmu_reason(errno);
    EXPECT_TRUE(fcntl(counter.get(), F_GETFD) & FD_CLOEXEC);
}

TEST(CaptureTraffic, IsThatOfTheDescriptorOrOfTheGraph) {
    for (const unsigned level : {40U, 70U}) {
        auto model = npu_model(2, "[1,3,8,8]", level);
        auto descriptor = descriptor_of(model, level);
        descriptor.ddr_stats = true;
        for (auto& op : descriptor.cores[0].groups[0].ops)
            if (!op.name.empty()) op.read_bytes = op.write_bytes = 768;
        add_descriptor(model, descriptor);
        Profiled p(std::move(model), std::make_shared<KeepingSink>(level), cpu_views(), false);
        const Capture capture = p.execute();
        ASSERT_EQ(capture.traffic.size(), 1U);
        EXPECT_FALSE(capture.traffic[0].is_measured);
        EXPECT_EQ(capture.traffic[0].read_bytes, 2 * 768U);
        EXPECT_EQ(capture.traffic[0].write_bytes, 2 * 768U);
    }
    Profiled without(npu_model(1), 40);
    EXPECT_EQ(reason_of(without.execute(), field::ddr),
              "the model was compiled without --ddr-stats");
}

}  // namespace
