// SPDX-License-Identifier: Apache-2.0
// The estimate beside the measurement: figures by hand, what has no partner, a foreign clock.
#include "lib/tools/opstats/layers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/support/temp_dir.h"
#include "tests/tools/opstats/captures.h"

namespace vartml::profiling {
namespace {

LayerEstimates estimates(uint64_t clock_hz) {
    auto own = read_estimate(
        "0:\n  name: conv_0\n  start_cycle: 0\n  end_cycle: 99999\n"
        "1:\n  name: conv_1\n  start_cycle: 100000\n  end_cycle: 149999\n"
        "2:\n  name: \"gone, \\\"folded\\\"\"\n  start_cycle: 150000\n  end_cycle: 159999\n",
        "e.yaml");
    EXPECT_TRUE(own) << own.error().message;
    LayerEstimates out;
    out.of_partitions.push_back(*own);
    out.clock_hz = clock_hz;
    return out;
}

Result<LayersReport> layers(const LayerEstimates& of, uint32_t batch = 1,
                            std::vector<NotCaptured> missing = {}) {
    const test::TempDir dir;
    Descriptor descriptor = test::small_descriptor();
    descriptor.batch = batch;
    Capture capture = test::small_capture();
    capture.threads.resize(5);  // core 0
    capture.missing = std::move(missing);
    EXPECT_TRUE(write_stats_buffer(capture, test::small_context(descriptor), dir / "b.bin"));
    const auto file = BufferFile::open(dir / "b.bin");
    EXPECT_TRUE(file) << file.error().message;
    return build_layers(*file, descriptor, of);
}

// conv_0 was measured with 80 us and estimated with 100 us, conv_1 with 50 us twice.
constexpr const char* golden =
    "index,name,partition,engine,est_cycles,est_us,meas_us,meas_cycles,error_pct,est_share_pct,"
    "meas_share_pct,scaled_error_pct,macs,gops_per_s,computed_read_kb,computed_write_kb,gb_per_s,"
    "bound\n"
    "0,conv_0,vaiml_par_0,SNPU,100000,100.000,80.000,80000,25.00,62.50,47.06,8.33,500000,12.500,"
    "128.00,64.00,2.458,compute\n"
    "1,conv_1,vaiml_par_0,SNPU,50000,50.000,50.000,50000,0.00,31.25,29.41,-13.33,20000,0.800,"
    "64.00,32.00,1.966,memory\n"
    "2,\"gone, \"\"folded\"\"\",vaiml_par_0,SNPU,10000,10.000,,,,6.25,,,,,,,,unmatched\n"
    ",vaiml_par_0/out/y,vaiml_par_0,SNPU,,,10.000,10000,,,5.88,,0,0.000,32.00,32.00,6.554,"
    "unmatched\n"
    ",softmax_0,vaiml_cpu_subgraph_0,CPU,,,30.000,30000,,,17.65,,0,0.100,3.91,3.91,0.267,memory\n"
    ",total,,,160000,160.000,170.000,170000,-5.88,,,,,,,,,\n"
    ",mean_abs_error,,,,,,,12.50,,,10.83,,,,,,\n";

TEST(Layers, RefuseABatchThatGoesThroughInGroups) {
    const auto report = layers(estimates(1'000'000'000), 2, {{field::later_frames, "groups"}});
    ASSERT_FALSE(report);
    EXPECT_NE(report.error().message.find("compile the model with --batch-size 1"),
              std::string::npos)
        << report.error().message;
}

TEST(Layers, EstimateAFrameAndMeasureABatch) {
    const auto report = layers(estimates(1'000'000'000), 2);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_NE(csv_of(*report).find("0,conv_0,vaiml_par_0,SNPU,100000,200.000,80.000,80000,150.00,"),
              std::string::npos)
        << csv_of(*report);
}

TEST(Layers, AreTheGoldenTable) {
    const auto report = layers(estimates(1'000'000'000));
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(csv_of(*report), golden);
    EXPECT_EQ(report->lines, (std::vector<std::string>{
                                 "layers: estimated 160.000 us, measured 170.000 us",
                                 "mean absolute error of a layer: 12.50 %, scaled 10.83 %",
                                 "worst layer: vaiml_par_0/conv_0 +25.00 %",
                                 "worst layer: vaiml_par_0/conv_1 +0.00 %",
                             }));
}

TEST(Layers, EveryRowHasTheColumnsOfTheHeader) {
    for (const uint64_t hz : {uint64_t{0}, uint64_t{1'000'000'000}}) {
        const auto report = layers(estimates(hz));
        ASSERT_TRUE(report);
        std::istringstream lines(csv_of(*report));
        for (std::string line; std::getline(lines, line);) {
            if (line.find('"') != line.npos) continue;
            EXPECT_EQ(std::ranges::count(line, ','), 17) << line;
        }
    }
}

TEST(Layers, AnUnknownClockLeavesSharesAndScaledErrors) {
    const auto report = layers(estimates(0));
    ASSERT_TRUE(report);
    EXPECT_NE(csv_of(*report).find("0,conv_0,vaiml_par_0,SNPU,100000,,80.000,,,62.50,47.06,8.33,"),
              std::string::npos)
        << csv_of(*report);
    EXPECT_NE(report->lines[0].find("unknown clock"), std::string::npos);
}

TEST(Layers, NeedAnEstimateForEachPartition) {
    const auto report = layers({});
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(report.error().message.find("0 files, the model has 1 NPU partitions"),
              std::string::npos);
}

}  // namespace
}  // namespace vartml::profiling
