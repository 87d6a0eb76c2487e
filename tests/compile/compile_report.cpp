// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lib/compile/perf_metrics.h"
#include "lib/compile/summary.h"
#include "tests/support/graphs.h"

namespace vartml::compiler {
namespace {

using artifact::CompiledModel;
using artifact::Fallback;

void add_fallbacks(CompiledModel& m, const std::string& code, const std::string& text,
                   const std::vector<std::pair<std::string, int>>& operators) {
    for (const auto& [op, count] : operators)
        for (int i = 0; i < count; ++i)
            m.summary.fallbacks.push_back({op + std::to_string(i), op, code, text, 1});
}

// The model of the golden report.
CompiledModel shelf() {
    CompiledModel m;
    m.tool_version = "vartml 1.0.0";
    m.device = "ve2-xc2ve3858";
    m.compilation = artifact::Compilation::cpu_partition;
    m.model_signature = "7c0e5a4f1d2b3869a0f4c1e27b95d368";
    m.summary = {.os = "Linux X64",
                 .commit = std::string(40, '0'),
                 .model = "shelf.onnx",
                 .model_data_type = "float32",
                 .device_data_type = "bfloat16",
                 .total = {120, 5216480000, 0},
                 .supported = {108, 5207296000, 3},
                 .offloaded = {71, 3502080000, 1},
                 .compile_errors = 1,
                 .below_threshold = 1,
                 .folded = 14,
                 .fallbacks = {}};
    const auto add = [&](const char* name, artifact::PartitionKind kind, uint32_t operators,
                         uint64_t ops) {
        artifact::Partition p;
        p.name = name;
        p.kind = kind;
        p.operators = operators;
        p.ops = ops;
        m.partitions.push_back(std::move(p));
    };
    add("vaiml_par_0", artifact::PartitionKind::npu, 71, 3502080000);
    add("vaiml_cpu_subgraph_0", artifact::PartitionKind::cpu, 37, 1705216000);
    add("vaiml_cpu_subgraph_1", artifact::PartitionKind::cpu, 12, 9184000);
    add_fallbacks(m, "data-dependent-shape", "input shape is known only at run time",
                  {{"Slice", 2}, {"Gather", 3}});
    add_fallbacks(m, "unsupported-operator", "not implemented on the NPU",
                  {{"ArgMax", 1}, {"NonMaxSuppression", 1}, {"GatherElements", 2}, {"TopK", 3}});
    add_fallbacks(m, "compile-error",
                  "candidate_1 needs 2,310,012,928 bytes of device memory, limit 2,147,483,648",
                  {{"Relu", 12}, {"Conv", 13}, {"Concat", 2}, {"Resize", 1}});
    add_fallbacks(m, "below-threshold", "candidate_2 holds 3.936% of the GOPs, threshold 20%",
                  {{"Mul", 3}, {"Conv", 3}, {"Sigmoid", 3}});
    return m;
}

constexpr const char* golden = R"(--------- Final Summary of VAIML Pass ----------
OS: Linux X64
VAIP commit: 0000000000000000000000000000000000000000
Model: shelf.onnx
Model signature: 7c0e5a4f1d2b3869a0f4c1e27b95d368
Device: ve2-xc2ve3858
Model data type: float32
Device data type: bfloat16
Number of operators in the model: 120
GOPs of the model: 5.21648
Number of operators supported by VAIML: 108 (90.000%)
GOPs supported by VAIML: 5.207 (99.824%)
Number of subgraphs supported by VAIML: 3
Number of operators offloaded by VAIML: 71 (59.167%)
GOPs offloaded by VAIML: 3.502 (67.135%)
Number of subgraphs offloaded by VAIML: 1
Number of subgraphs with compilation errors (fall back to CPU): 1
Number of subgraphs below 20% GOPs threshold (fall back to CPU): 1
Number of subgraphs above max number of subgraphs allowed(7): 0 (fall back to CPU)
Stats for offloaded subgraphs
Subgraph vaiml_par_0 stats:
    Type: npu
    Operators: 71 (59.167%)
    GOPs : 3.502 (67.135%)  OPs: 3,502,080,000

--------- Additional Information (vartml 1.0.0) ----------
Compilation: cpu_partition
Batch size: desired 1, actual 1
Operators folded at import: 14
Stats for CPU subgraphs
Subgraph vaiml_cpu_subgraph_0 stats:
    Type: cpu
    Operators: 37 (30.833%)
    GOPs : 1.705 (32.689%)  OPs: 1,705,216,000
Subgraph vaiml_cpu_subgraph_1 stats:
    Type: cpu
    Operators: 12 (10.000%)
    GOPs : 0.009 (0.176%)  OPs: 9,184,000
Fallback reasons
    compile-error (28): candidate_1 needs 2,310,012,928 bytes of device memory, limit 2,147,483,648
        Conv x13, Relu x12, Concat x2, Resize x1
    below-threshold (9): candidate_2 holds 3.936% of the GOPs, threshold 20%
        Conv x3, Mul x3, Sigmoid x3
    unsupported-operator (7): not implemented on the NPU
        TopK x3, GatherElements x2, ArgMax x1, NonMaxSuppression x1
    data-dependent-shape (5): input shape is known only at run time
        Gather x3, Slice x2
)";

TEST(Summary, EqualsTheGoldenReport) {
    EXPECT_EQ(summary_text(shelf()), golden);
}

TEST(Summary, SaysNoneWithoutFallbacksAndZeroPercentOfNothing) {
    CompiledModel m = shelf();
    m.summary.fallbacks.clear();
    m.summary.total = m.summary.supported = m.summary.offloaded = {1, 0, 1};
    m.partitions.resize(1);
    const std::string text = summary_text(m);
    EXPECT_NE(text.find("Fallback reasons\n    none\n"), std::string::npos);
    EXPECT_NE(text.find("GOPs of the model: 0\n"), std::string::npos);
    EXPECT_NE(text.find("GOPs offloaded by VAIML: 0.000 (0.000%)\n"), std::string::npos);
}

TEST(Schedule, PutsLayersBackToBack) {
    const auto graph = graph::must_parse(
        "graph g\ninput %x : f32[1,4,8,8]\nconst %w : f32[4,4,1,1] = {1.0}\n"
        "%a = Conv+Relu %x, %w, _ {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : "
        "f32[1,4,8,8]\n"
        "%y = LeakyRelu %a {alpha=0.1} : f32[1,4,8,8]\noutput %y\n");
    const Schedule s = plan_layers(graph, *device::find_target("softnpu"), "MLA_0/");
    ASSERT_EQ(s.layers.size(), 2u);
    EXPECT_EQ(s.layers[0].name, "MLA_0/conv2d_relu_0");
    EXPECT_EQ(s.layers[1].name, "MLA_0/leaky_relu_1");
    EXPECT_EQ(s.layers[0].start_cycle, 0u);
    EXPECT_GT(s.layers[0].end_cycle, 0u);
    EXPECT_EQ(s.layers[1].start_cycle, s.layers[0].end_cycle + 1);
    EXPECT_EQ(s.layers[0].bytes_read, (256u + 16u) * 4);
    EXPECT_EQ(s.layers[0].ops, 2u * 256 * 4 + 256);
    EXPECT_EQ(s.node_layers, (std::vector<int32_t>{0, 1}));
}

TEST(Schedule, PlacesOnlyWhatLiesBetweenNodesInTheArena) {
    const auto graph = graph::must_parse(
        "graph g\ninput %x : f32[64]\n%a = Neg %x : f32[64]\n%b = Exp %a : f32[64]\n%c = Abs %b : "
        "f32[64]\n%y = Neg %c : f32[64]\n"
        "output %y\n");
    const Arena arena = plan_arena(graph);
    // a and c never live at once with each other, b lives with both: two places.
    EXPECT_EQ(arena.size_bytes, 512u);
    EXPECT_EQ(arena.offsets.size(), graph.values.size());
}

}  // namespace
}  // namespace vartml::compiler
