// SPDX-License-Identifier: Apache-2.0
// Captures whose answer is known: what bounds each of them.
#include "lib/tools/opstats/verdict.h"

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"
#include "tests/tools/opstats/captures.h"

namespace vartml::profiling {
namespace {

using test::start_ns;

constexpr uint64_t us = 1000;

// One core, one thread: each operator follows the one before it. The peaks are 50 GOP/s and
// 10 GB/s, so that 1 us is 50'000 operations or 10'000 bytes.
struct Case {
    const char* what;
    uint64_t compute_us, memory_us, conversion_us, barrier_us, round_trip_us;
    unsigned level;
    bool has_peaks;
    const char* sentence;
};

const Case cases[] = {
    {"most time computes", 80, 5, 5, 10, 110, 70, true, "compute bound (margin 0.59)"},
    {"most time moves data", 10, 60, 10, 20, 120, 70, true, "memory bound (margin 0.25)"},
    {"most time waits and converts", 15, 15, 30, 40, 110, 70, true, "overhead bound (margin 0.50)"},
    {"most time is the host's", 40, 20, 20, 20, 400, 70, true, "host bound (margin 0.65)"},
    {"two are as large", 48, 46, 3, 3, 101, 70, true,
     "mixed compute and memory bound (margin 0.02)"},
    {"nobody calibrated", 80, 5, 5, 10, 110, 70, false,
     "device bound (compute or memory not captured: run vartml doctor --calibrate)"},
    {"no operators", 80, 5, 5, 10, 110, 40, true,
     "device bound (operators not captured: level 40, needs 70)"},
    {"no operators, and the host", 40, 20, 20, 20, 400, 50, true,
     "host bound (operators not captured: level 50, needs 70)"},
};

Descriptor line_descriptor() {
    Descriptor d = test::small_descriptor();
    Op compute = test::conv_op(1, "compute_0", 0, 100, 4'000'000);
    Op memory = test::conv_op(2, "memory_0", 1, 1'000'000, 10);
    Op conversion = test::wait_op(3, test::kind_to_nchw, 0);
    conversion.data_movement = true;
    d.cores[0].groups = {
        {0, {compute, memory, conversion, test::wait_op(4, test::kind_barrier, 0)}}};
    return d;
}

Capture line_capture(const Case& c) {
    Capture capture;
    capture.captured_level = static_cast<uint16_t>(c.level);
    ThreadCapture t;
    uint64_t at = start_ns;
    const auto next = [&](uint64_t length) {
        const Stamp stamp{at, at + length * us};
        at = stamp.end;
        return stamp;
    };
    const std::vector<Stamp> ops = {next(c.compute_us), next(c.memory_us), next(c.conversion_us),
                                    next(c.barrier_us)};
    if (c.level >= level_operators) t.ops = ops;
    t.start = start_ns;
    t.end = at;
    capture.threads = {t};
    capture.has_host = true;
    // The host has what is left, and 1000 us in our own queue, which do not count.
    capture.host.fill(start_ns);
    for (size_t i = 2; i < 8; ++i) capture.host[i] = start_ns + 1000 * us;
    capture.host[8] = start_ns + (1000 + c.round_trip_us) * us;
    return capture;
}

BufferContext context_of(const Descriptor& descriptor, const Case& c) {
    BufferContext context = test::small_context(descriptor);
    if (!c.has_peaks) context.peak_ops_per_s = context.peak_bytes_per_s = 0;
    return context;
}

TEST(Verdict, SaysWhatBoundsTheInference) {
    const Descriptor descriptor = line_descriptor();
    for (const Case& c : cases) {
        const Verdict v = verdict_of(line_capture(c), context_of(descriptor, c));
        EXPECT_EQ(v.sentence, c.sentence) << c.what;
        const Shares& s = v.shares;
        double sum = 0;
        for (const auto& share : {s.compute, s.memory, s.overhead, s.host, s.device})
            sum += share.value_or(0);
        EXPECT_NEAR(sum, 1, 0.001) << c.what;
        EXPECT_NEAR(
            *s.host,
            static_cast<double>(c.round_trip_us - 100) / static_cast<double>(c.round_trip_us),
            0.001)
            << c.what;
    }
}

// The threads of a busy machine wait for a processor inside of their operators.
TEST(Verdict, IsStarvedWhereTheThreadsHadNoProcessor) {
    const Descriptor descriptor = line_descriptor();
    const Case& c = cases[0];  // 90 us of work, and a barrier
    const BufferContext context = context_of(descriptor, c);
    struct Row {
        uint64_t cpu_us;
        const char* sentence;
    };
    const char* const starved =
        "starved (its threads had a processor for 18 % of the time that they worked: others run on "
        "this machine)";
    const Row rows[] = {{16, starved}, {63, c.sentence}, {99, c.sentence}};
    for (const Row& row : rows) {
        Capture capture = line_capture(c);
        capture.threads[0].cpu_ns = row.cpu_us * us;
        const Verdict v = verdict_of(capture, context);
        EXPECT_EQ(v.sentence, row.sentence) << row.cpu_us;
        const Verdict two[] = {v, v};
        EXPECT_EQ(median_of(two).processor, v.processor);
        EXPECT_EQ(median_of(two).sentence.starts_with("starved"), row.sentence == starved);
    }
}

// The stamps are those of the first frames, and all that they would be compared with is of all.
TEST(Verdict, KnowsNoOperatorsOfABatchThatGoesThroughInGroups) {
    const test::TempDir dir;
    const Descriptor descriptor = line_descriptor();
    const Case& c = cases[2];
    const BufferContext context = context_of(descriptor, c);
    Capture capture = line_capture(c);
    capture.threads[0].cpu_ns = us;
    capture.missing = {{field::later_frames, "groups"}};
    const Verdict v = verdict_of(capture, context);
    EXPECT_EQ(v.sentence,
              "device bound (operators of all frames not captured: the batch goes through the "
              "program in groups of frames, and they are those of the first)");
    EXPECT_FALSE(v.processor);
    EXPECT_TRUE(v.top.empty());
    ASSERT_TRUE(write_stats_buffer(capture, context, dir / "b.bin"));
    const auto file = BufferFile::open(dir / "b.bin");
    ASSERT_TRUE(file) << file.error().message;
    const auto from_file = verdict_of(*file, descriptor);
    ASSERT_TRUE(from_file);
    EXPECT_EQ(notes_of(*from_file), notes_of(v));
}

TEST(Verdict, SaysWhereCalibratingDoesNotHelp) {
    const Descriptor descriptor = line_descriptor();
    BufferContext context = context_of(descriptor, cases[0]);
    context.peak_ops_per_s = 0;  // of a type for which the processor has no instructions
    EXPECT_EQ(verdict_of(line_capture(cases[0]), context).sentence,
              "device bound (compute or memory not captured: this processor has no peak of the "
              "type that is computed in)");
}

TEST(Verdict, IsTheSameFromAFile) {
    const test::TempDir dir;
    const Descriptor descriptor = test::small_descriptor();
    const Capture capture = test::small_capture();
    const BufferContext context = test::small_context(descriptor);
    ASSERT_TRUE(write_stats_buffer(capture, context, dir / "b.bin"));
    const auto file = BufferFile::open(dir / "b.bin");
    ASSERT_TRUE(file) << file.error().message;
    const auto from_file = verdict_of(*file, descriptor);
    ASSERT_TRUE(from_file);
    EXPECT_EQ(notes_of(*from_file), notes_of(verdict_of(capture, context)));
}

// Two cores 5 us apart, each with conv_0 from 10 to 90 us and conv_1 from 90 to 140 us: by hand,
// where both run each gets half of the instant.
TEST(Verdict, AnInstantIsSharedByTheOperatorsThatRunInIt) {
    const Descriptor descriptor = test::small_descriptor();
    const Verdict v = verdict_of(test::small_capture(), test::small_context(descriptor));
    ASSERT_EQ(v.top.size(), 5U);
    EXPECT_EQ(v.top[0].name, "vaiml_par_0/conv_0");
    // From 10 us alone, from 15 to 90 us shared with the other core.
    EXPECT_NEAR(v.top[0].us, 5 + 75 / 2.0, 0.001);
    // Softmax of core 0 from 155 to 185 us and of core 1 from 160 to 190 us.
    EXPECT_NEAR(v.top[4].us, 5 + 25 / 2.0, 0.001);
    EXPECT_EQ(v.top[4].name, "vaiml_cpu_subgraph_0/softmax_0");
    // One of them works from 10 to 145 us and from 155 to 190 us.
    EXPECT_NEAR(*v.shares.overhead * v.round_trip_ns, 205'000 - 170'000, 1);
    EXPECT_EQ(v.round_trip_ns, 290'000);
}

TEST(Verdict, GivesAHintForEachFinding) {
    Descriptor descriptor = line_descriptor();
    Case c = cases[0];
    c.conversion_us = 20;
    Capture capture = line_capture(c);
    capture.is_first_of_core = true;
    capture.lost_records = 7;
    capture.ports = {{0, 0, input_port, false, 1, 500 * us}};
    ThreadCapture idle = capture.threads[0];
    idle.thread = 1;
    idle.ops[0].end = idle.ops[0].start + 1;
    idle.ops[1] = {};
    idle.ops[2].end = idle.ops[2].start + 1;
    capture.threads.push_back(idle);
    const Verdict v = verdict_of(capture, context_of(descriptor, c));
    const char* words[] = {"layout conversions take", "thread 0 of core 0 works 2.00 times",
                           "the first inference of a core", "the application cannot feed it",
                           "7 records were lost"};
    ASSERT_EQ(v.hints.size(), std::size(words));
    for (size_t i = 0; i < std::size(words); ++i)
        EXPECT_NE(v.hints[i].find(words[i]), std::string::npos) << v.hints[i];
    descriptor.engines[0] = cpu_engine;
    EXPECT_NE(verdict_of(capture, context_of(descriptor, c)).hints[0].find("CPU partitions take"),
              std::string::npos);
}

TEST(Verdict, OfSeveralBuffersIsTheMedian) {
    const Descriptor descriptor = line_descriptor();
    std::vector<Verdict> all;
    for (const size_t i : {0U, 0U, 3U})
        all.push_back(verdict_of(line_capture(cases[i]), context_of(descriptor, cases[i])));
    const Verdict median = median_of(all);
    EXPECT_EQ(median.sentence, cases[0].sentence);
    EXPECT_EQ(median.round_trip_ns, 110'000);
    EXPECT_NEAR(*median.shares.compute + *median.shares.memory + *median.shares.overhead +
                    *median.shares.host,
                1, 1e-9);
}

TEST(Verdict, TheMedianSaysWhyOperatorsAreUnknown) {
    Verdict starved;
    starved.sentence = "starved (others run on this machine)";
    starved.reason = "operators not captured";
    starved.shares.device = 0.9;
    starved.shares.host = 0.1;
    const Verdict all[] = {starved, starved};
    EXPECT_EQ(median_of(all).sentence, "device bound (operators not captured)");
}

TEST(Verdict, EndsWithTheDeviceWhereNobodyWaited) {
    const Descriptor descriptor = line_descriptor();
    Capture capture = line_capture(cases[0]);
    capture.host[6] = capture.host[8];
    capture.host[7] = capture.host[8] = not_captured;
    EXPECT_EQ(verdict_of(capture, context_of(descriptor, cases[0])).sentence, cases[0].sentence);
    capture.host.fill(not_captured);
    EXPECT_FALSE(verdict_of(capture, context_of(descriptor, cases[0])).shares.host);
}

TEST(Verdict, WithoutHostStampsSpeaksOfTheExecutionAlone) {
    const Descriptor descriptor = line_descriptor();
    Capture capture = line_capture(cases[0]);
    capture.has_host = false;
    const Verdict v = verdict_of(capture, context_of(descriptor, cases[0]));
    EXPECT_EQ(v.sentence, "compute bound (margin 0.65)");
    EXPECT_EQ(text_of(notes_of(v)[1]),
              "verdict-share: compute 0.80 memory 0.05 overhead 0.15 host N/A");
}

}  // namespace
}  // namespace vartml::profiling
