// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/collector.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "lib/trace/latency_file.h"

namespace vartml::profiling {
namespace {

uint64_t now_ns = 0;
uint64_t fake_clock() {
    return now_ns;
}

Capture capture_of(uint64_t inference, uint64_t begin_ns = 1000, uint64_t end_ns = 3000) {
    Capture capture;
    capture.inference_index = inference;
    ThreadCapture thread;
    thread.start = begin_ns;
    thread.end = end_ns;
    capture.threads = {thread};
    return capture;
}

std::vector<unsigned> levels(Collector& collector, uint64_t from, uint64_t to) {
    std::vector<unsigned> out;
    for (uint64_t i = from; i < to; ++i) out.push_back(collector.level_of(i));
    return out;
}

using Levels = std::vector<unsigned>;

TEST(Collector, RecordsNothingBeforeItsBeginAndAfterItsEnd) {
    Collector collector({.level = 70, .level_of_rest = 50, .num_samples = 2});
    EXPECT_EQ(levels(collector, 0, 3), (Levels{0, 0, 0}));
    collector.begin(5);
    EXPECT_EQ(levels(collector, 3, 9), (Levels{0, 0, 70, 70, 50, 50}));
    collector.end();
    EXPECT_EQ(levels(collector, 9, 11), (Levels{0, 0}));
    collector.begin(11);
    EXPECT_EQ(collector.level_of(11), 70U);
}

TEST(Collector, SamplesEveryNth) {
    struct Case {
        unsigned every;
        Levels want;
    };
    const Case cases[] = {
        {1, {70, 70, 40, 40, 40, 40, 40, 40, 40}}, {2, {70, 0, 70, 0, 40, 0, 40, 0, 40}},
        {4, {70, 0, 0, 0, 70, 0, 0, 0, 40}},       {8, {70, 0, 0, 0, 0, 0, 0, 0, 70}},
        {16, {70, 0, 0, 0, 0, 0, 0, 0, 0}},
    };
    for (const Case& c : cases) {
        Collector collector({.level = 70, .level_of_rest = 40, .num_samples = 2, .every = c.every});
        collector.begin(3);
        EXPECT_EQ(levels(collector, 3, 12), c.want) << c.every;
    }
}

TEST(Collector, EndsWithItsDuration) {
    now_ns = 1'000'000;
    Collector collector({.level = 50,
                         .level_of_rest = 50,
                         .num_samples = 9,
                         .duration_ns = 1000,
                         .clock = fake_clock});
    collector.begin(0);
    EXPECT_EQ(collector.level_of(0), 50U);
    now_ns += 999;
    EXPECT_EQ(collector.level_of(1), 50U);
    now_ns += 1;
    EXPECT_EQ(collector.level_of(2), 0U);
}

TEST(Collector, KeepsTheSamplesAndCountsTheRest) {
    Collector collector({.program_index = 0,
                         .activation_index = 3,
                         .level = 70,
                         .level_of_rest = 50,
                         .num_samples = 2});
    collector.begin(10);
    levels(collector, 10, 14);
    // In any order.
    for (const uint64_t inference : {12, 11, 13, 10})
        collector.take(capture_of(inference, 1000, 1000 + inference * 1000));
    EXPECT_EQ(collector.wait_for_captures(std::chrono::seconds(0)), 0U);
    EXPECT_EQ(collector.device().execution_us.count(), 4U);
    EXPECT_EQ(collector.device().execution_us.min(), 10);
    EXPECT_EQ(collector.device().execution_us.max(), 13);
    EXPECT_EQ(collector.device().input_wait_us.count(), 0U);
    const auto samples = collector.samples();
    ASSERT_EQ(samples.size(), 2U);
    EXPECT_EQ(samples[0].inference_index, 10U);
    EXPECT_EQ(samples[1].inference_index, 11U);
    EXPECT_EQ(samples[0].activation_index, 3U);
}

TEST(Collector, SaysHowManyCapturesDidNotArrive) {
    Collector collector({.level = 50, .level_of_rest = 50, .num_samples = 1});
    collector.begin(0);
    levels(collector, 0, 3);
    collector.take(capture_of(1));
    EXPECT_EQ(collector.wait_for_captures(std::chrono::milliseconds(1)), 2U);
}

TEST(Collector, WaitsForCapturesOfOtherThreads) {
    Collector collector({.level = 50, .level_of_rest = 50, .num_samples = 4});
    collector.begin(0);
    levels(collector, 0, 4);
    std::vector<std::jthread> threads;
    for (uint64_t i = 0; i < 4; ++i)
        threads.emplace_back([&, i] { collector.take(capture_of(i)); });
    EXPECT_EQ(collector.wait_for_captures(std::chrono::seconds(60)), 0U);
    EXPECT_EQ(collector.samples().size(), 4U);
}

TEST(RunningStats, AreThoseOfAllValues) {
    RunningStats all, first, second;
    for (const double v : {2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0}) all.add(v);
    for (const double v : {2.0, 4.0, 4.0}) first.add(v);
    for (const double v : {4.0, 5.0, 5.0, 7.0, 9.0}) second.add(v);
    first.add(second);
    first.add(RunningStats());
    for (const RunningStats& s : {all, first}) {
        EXPECT_EQ(s.count(), 8U);
        EXPECT_DOUBLE_EQ(s.mean(), 5);
        EXPECT_DOUBLE_EQ(s.deviation(), 2);
        EXPECT_EQ(s.min(), 2);
        EXPECT_EQ(s.max(), 9);
    }
}

TEST(DeviceTimes, AreThoseOfAllThreadsAndTheLongestPort) {
    Capture capture = capture_of(0, 5000, 9000);
    capture.threads.push_back(capture.threads[0]);
    capture.threads[1].start = 4000;
    capture.threads.emplace_back();  // never ran
    capture.ports = {{.wait_ns = 1500}, {.wait_ns = 2500}, {.wait_ns = not_captured}};
    EXPECT_EQ(execution_of(capture)->us(), 5);
    EXPECT_EQ(longest_wait_us(capture, false), 2.5);
    EXPECT_EQ(longest_wait_us(capture, true), std::nullopt);
    EXPECT_FALSE(execution_of(Capture{}));
}

}  // namespace
}  // namespace vartml::profiling
