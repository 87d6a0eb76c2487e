// SPDX-License-Identifier: Apache-2.0
// The time of an inference by the nodes of the ONNX file.
#include "lib/tools/opstats/nodes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/temp_dir.h"
#include "tests/tools/opstats/captures.h"

namespace vartml::profiling {
namespace {

NodeTable nodes() {
    const test::TempDir dir;
    Descriptor descriptor = test::small_descriptor();
    descriptor.cores[0].groups[0].ops[1].onnx_nodes = {"/net/Conv", "/net/Relu"};
    Capture capture = test::small_capture();
    capture.threads.resize(5);  // core 0
    EXPECT_TRUE(write_stats_buffer(capture, test::small_context(descriptor), dir / "b.bin"));
    const auto file = BufferFile::open(dir / "b.bin");
    EXPECT_TRUE(file) << file.error().message;
    const auto table = build_nodes(*file, descriptor);
    EXPECT_TRUE(table) << table.error().message;
    return *table;
}

NodeRow row(const NodeTable& table, const std::string& name) {
    const auto found = std::ranges::find(table.rows, name, &NodeRow::name);
    EXPECT_NE(found, table.rows.end()) << name;
    return found == table.rows.end() ? table.rows.front() : *found;
}

TEST(Nodes, HaveTheNamesOfTheFile) {
    const NodeTable table = nodes();
    const NodeRow conv = row(table, "/net/Conv + /net/Relu");
    EXPECT_EQ(conv.kind, "conv");
    EXPECT_EQ(conv.engine, npu_engine);
    EXPECT_DOUBLE_EQ(*conv.ms, 0.080);
    EXPECT_DOUBLE_EQ(*conv.gops_per_s, 1'000'000 / 80'000.);
    // What came from no node has its own.
    EXPECT_DOUBLE_EQ(*row(table, "conv_1").ms, 0.050);
    EXPECT_EQ(row(table, "softmax_0").engine, cpu_engine);
}

TEST(Nodes, StandByTimeAndAddUpToTheInference) {
    const NodeTable table = nodes();
    EXPECT_TRUE(std::ranges::is_sorted(table.rows, std::ranges::greater(),
                                       [](const NodeRow& r) { return *r.ms; }));
    double ms = 0, percent = 0;
    for (const NodeRow& r : table.rows) {
        ms += *r.ms;
        percent += *r.percent;
    }
    EXPECT_NEAR(ms, table.ms, 1e-9);
    EXPECT_NEAR(percent, 100, 1e-6);
    EXPECT_GT(*row(table, "(between operators)").ms, 0);
    EXPECT_GT(*row(table, "(on the host)").ms, 0);
    EXPECT_TRUE(row(table, "(on the host)").kind.empty());
}

}  // namespace
}  // namespace vartml::profiling
