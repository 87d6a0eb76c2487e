// SPDX-License-Identifier: Apache-2.0
// The stats descriptor of compiled models, and the steps that a device makes of them.
#include "lib/compile/stats_descriptor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "lib/base/saturating.h"
#include "lib/compile/compile.h"
#include "lib/compile/perf_metrics.h"
#include "lib/graph/ops.h"
#include "lib/model/stats_descriptor.h"
#include "lib/run/softnpu/lowering.h"
#include "lib/run/softnpu/processor.h"
#include "tests/support/graphs.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_onnx.h"

namespace vartml::compiler {
namespace {

using artifact::CompiledModel;
using artifact::PartitionKind;
using profiling::Descriptor;
using profiling::Op;
using test::TinyOnnx;
using Ints = TinyOnnx::Ints;

CompileRequest request(unsigned level) {
    CompileRequest r;
    r.threshold_gops_percent = 0;
    r.stats.level = level;
    return r;
}

CompiledModel compiled(const TinyOnnx& onnx, CompileRequest r) {
    test::TempDir dir;
    r.model = dir / "m.onnx";
    onnx.save(r.model);
    std::string ignored;
    auto model = compile_in_memory(r, &ignored, nullptr);
    EXPECT_TRUE(model) << model.error().message;
    return model ? std::move(*model) : CompiledModel();
}

Descriptor descriptor(const CompiledModel& model) {
    auto d = artifact::descriptor_of(model, "m");
    EXPECT_TRUE(d) << d.error().message;
    return d ? std::move(*d) : Descriptor();
}

// A picture into 20 channels, of which the CPU sorts; both halves are outputs.
TinyOnnx mixed() {
    TinyOnnx m;
    m.input("images", {1, 3, 16, 16}).weights("w", {20, 3, 3, 3}).weights("v", {8, 20, 1, 1});
    m.node("Conv", {"images", "w"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}}).node("Relu", {"c"}, {"r"});
    m.node("NonZero", {"r"}, {"places"});
    m.node("Conv", {"r", "v"}, {"d"});
    m.output("r").output("places", {}, TinyOnnx::int64).output("d");
    return m;
}

std::string kinds(const Descriptor& d, const profiling::Group& group) {
    std::string text;
    for (const Op& op : group.ops)
        text +=
            (text.empty() ? "" : " ") + (op.name.empty() ? d.kind(op) : d.kind(op) + ":" + op.name);
    return text;
}

TEST(StatsDescriptor, HasSyncOperatorsAndBarriersInExecutionOrder) {
    const CompiledModel model = compiled(mixed(), request(70));
    const Descriptor d = descriptor(model);
    ASSERT_EQ(d.cores.size(), 1u);
    ASSERT_EQ(d.cores[0].groups.size(), 2u);
    EXPECT_EQ(d.engines, (std::vector<std::string>{"SNPU", "CPU"}));
    EXPECT_EQ(kinds(d, d.cores[0].groups[0]),
              "sync conv2d_relu:c_node barrier conv2d:d_node barrier "
              "convert_layout:vaiml_par_0/out/r barrier");
    EXPECT_EQ(kinds(d, d.cores[0].groups[1]),
              "sync non_zero:places_node barrier "
              "convert_layout:vaiml_cpu_subgraph_0/out/places barrier");
}

// A node that only moves elements is a node of the model all the same, whose time is its own.
TEST(StatsDescriptor, CountsNodesWithoutArithmeticAmongTheOperators) {
    const Descriptor d = descriptor(compiled(mixed(), request(70)));
    const Op& non_zero = d.cores[0].groups[1].ops[1];
    EXPECT_EQ(non_zero.name, "places_node");
    EXPECT_EQ(non_zero.ops, 0u);
    EXPECT_FALSE(non_zero.data_movement);
}

TEST(StatsDescriptor, ConvertsEachOutputThatIsReadInsideToo) {
    TinyOnnx m;
    m.input("images", {1, 3, 16, 16}).weights("w", {8, 3, 1, 1}).weights("v", {8, 8, 1, 1});
    m.node("Conv", {"images", "w"}, {"a"}).node("Conv", {"a", "v"}, {"b"});
    m.node("Conv", {"b", "v"}, {"c"}).output("a").output("b").output("c");
    const Descriptor d = descriptor(compiled(m, request(70)));
    EXPECT_EQ(kinds(d, d.cores[0].groups[0]),
              "sync conv2d:a_node barrier conv2d:b_node barrier conv2d:c_node barrier "
              "convert_layout:vaiml_par_0/out/a barrier "
              "convert_layout:vaiml_par_0/out/b barrier");
}

TEST(StatsDescriptor, CountsBytesAndWorkFromShapes) {
    CompileRequest r = request(70);
    const CompiledModel model = compiled(mixed(), r);
    const Descriptor d = descriptor(model);
    const auto& ops = d.cores[0].groups[0].ops;
    const Op& conv = ops[1];
    // 256 places, 20 filters of 3x3x3; one operation more per output for Relu.
    EXPECT_EQ(conv.macs, 256u * 20 * 27);
    EXPECT_EQ(conv.ops, 2 * conv.macs + 256 * 20);
    EXPECT_EQ(conv.out_bytes, 256u * 20 * 4);
    // The picture as it lies at the border, HCWNC4 in bf16, and the weights.
    EXPECT_EQ(conv.read_bytes, 256u * 4 * 2 + 20 * 27 * 4);
    EXPECT_EQ(conv.layer, 0);
    EXPECT_FALSE(conv.data_movement);
    EXPECT_EQ(conv.onnx_nodes, (std::vector<std::string>{"c_node", "r_node"}));
    EXPECT_NE(conv.attributes.find("pads=[1,1,1,1]"), std::string::npos);
    EXPECT_EQ(d.tensors[conv.inputs[0]].layout, static_cast<uint16_t>(Layout::HCWNC4));
    EXPECT_TRUE(d.tensors[conv.inputs[1]].constant);
    const Op& out = ops[5];
    EXPECT_TRUE(out.data_movement);
    EXPECT_EQ(out.macs + out.ops, 0u);
    EXPECT_EQ(d.estimate_entries, std::vector<std::string>{"vaiml_par_0/0/m_mla_stats.yaml"});
    std::string signature;  // in hexadecimal digits
    for (const uint8_t byte : d.model_signature)
        for (const unsigned digit : {byte / 16U, byte % 16U})
            signature += "0123456789abcdef"[digit];
    EXPECT_EQ(signature, model.model_signature);
    EXPECT_NE(signature, std::string(32, '0'));
    EXPECT_EQ(d.network, "m");
}

TEST(StatsDescriptor, CountsAWholeBatchAndItsConstantsOnce) {
    CompileRequest one = request(70), four = one;
    four.batch_size = 4;
    const Descriptor a = descriptor(compiled(mixed(), one)),
                     b = descriptor(compiled(mixed(), four));
    const Op &x = a.cores[0].groups[0].ops[1], &y = b.cores[0].groups[0].ops[1];
    EXPECT_EQ(b.batch, 4u);
    EXPECT_EQ(b.stats_batchsize, 4u);
    EXPECT_EQ(y.macs, 4 * x.macs);
    EXPECT_EQ(y.out_bytes, 4 * x.out_bytes);
    EXPECT_EQ(y.read_bytes, 4 * (x.read_bytes - 20 * 27 * 4) + 20 * 27 * 4);
}

// What waits for what: by names, "" of sync and barrier as their kind and id.
TEST(StatsDescriptor, ConnectsOperatorsByDataAndByOrder) {
    const Descriptor d = descriptor(compiled(mixed(), request(70)));
    std::map<uint32_t, std::string> names;
    for (const auto& group : d.cores[0].groups)
        for (const Op& op : group.ops)
            names[op.id] = op.name.empty() ? d.kind(op) + std::to_string(op.id) : op.name;
    std::set<std::string> data, order;
    for (const profiling::Edge& e : d.edges)
        (e.data ? data : order).insert(names.at(e.from) + ">" + names.at(e.to));
    EXPECT_EQ(data, (std::set<std::string>{"c_node>d_node", "c_node>vaiml_par_0/out/r",
                                           "vaiml_par_0/out/r>places_node",
                                           "places_node>vaiml_cpu_subgraph_0/out/places"}));
    EXPECT_EQ(order, (std::set<std::string>{"sync0>c_node", "c_node>barrier2", "barrier2>d_node",
                                            "d_node>barrier4", "barrier4>vaiml_par_0/out/r",
                                            "vaiml_par_0/out/r>barrier6", "barrier6>sync7",
                                            "sync7>places_node", "places_node>barrier9",
                                            "barrier9>vaiml_cpu_subgraph_0/out/places",
                                            "vaiml_cpu_subgraph_0/out/places>barrier11"}));
}

TEST(StatsDescriptor, LevelsDecideWhatIsThere) {
    struct Row {
        unsigned level;
        bool has_entry, has_operators;
    };
    for (const Row& row : {Row{0, false, false}, Row{39, false, false}, Row{40, true, false},
                           Row{60, true, false}, Row{70, true, true}, Row{100, true, true}}) {
        SCOPED_TRACE(row.level);
        const CompiledModel model = compiled(mixed(), request(row.level));
        EXPECT_EQ(model.stats_level, row.level);
        EXPECT_EQ(model.find_file(profiling::descriptor_entry) != nullptr, row.has_entry);
        if (!row.has_entry) {
            const auto none = artifact::descriptor_of(model, "m");
            ASSERT_FALSE(none);
            EXPECT_NE(none.error().message.find("--stats-level 40"), std::string::npos);
            continue;
        }
        const Descriptor d = descriptor(model);
        EXPECT_EQ(d.compiled_level, row.level);
        ASSERT_EQ(d.cores[0].groups.size(), 2u);  // threads belong to them at every level
        EXPECT_EQ(!d.cores[0].groups[0].ops.empty(), row.has_operators);
        EXPECT_EQ(!d.edges.empty(), row.has_operators);
    }
}

TEST(StatsDescriptor, SaysWhatWasAskedFor) {
    CompileRequest r = request(40);
    r.stats.batchsize = 8;
    r.stats.ddr = true;
    r.stats.pmu.events = {0x3f, 0x200};
    const Descriptor d = descriptor(compiled(mixed(), r));
    EXPECT_EQ(d.stats_batchsize, 8u);
    EXPECT_EQ(d.batch, 1u);
    EXPECT_TRUE(d.ddr_stats);
    EXPECT_EQ(d.pmu.events, (std::vector<uint32_t>{0x3f, 0x200}));
    EXPECT_EQ(d.target, "softnpu-1");
    EXPECT_GT(d.nominal_clock_hz, 0u);
}

TEST(StatsDescriptor, IsTheSameEachTimeAndInEachContainer) {
    const CompiledModel a = compiled(mixed(), request(70)), b = compiled(mixed(), request(70));
    ASSERT_NE(a.find_file(profiling::descriptor_entry), nullptr);
    const std::string bytes = *a.find_file(profiling::descriptor_entry);
    EXPECT_EQ(bytes, *b.find_file(profiling::descriptor_entry));
    EXPECT_EQ(bytes, artifact::write_descriptor(descriptor(a)));  // reading loses nothing
    test::TempDir dir;
    ASSERT_TRUE(artifact::write_directory(a, dir / "d"));
    ASSERT_TRUE(artifact::write_rai(a, dir / "m.rai"));
    ASSERT_TRUE(artifact::write_tar(a, dir / "m.tar.gz"));
    for (const char* name : {"d", "m.rai", "m.tar.gz"}) {
        const auto read = artifact::read(dir / name);
        ASSERT_TRUE(read) << read.error().message;
        ASSERT_NE(read->find_file(profiling::descriptor_entry), nullptr) << name;
        EXPECT_EQ(*read->find_file(profiling::descriptor_entry), bytes) << name;
        EXPECT_EQ(read->stats_level, 70);
    }
}

// ---- the steps of a device

// Names of the operators of a partition; that none occurs twice is part of the contract.
std::set<std::string> operators_of(const Descriptor& d, const std::string& partition) {
    std::set<std::string> names;
    for (const auto& group : d.cores[0].groups)
        for (const Op& op : group.ops)
            if (!op.name.empty() && d.partitions[op.partition] == partition) {
                EXPECT_TRUE(names.insert(op.name).second) << op.name << " twice";
            }
    return names;
}

void check_steps(const CompiledModel& model) {
    const Descriptor d = descriptor(model);
    for (const artifact::Partition& p : model.partitions) {
        SCOPED_TRACE(p.name);
        const std::set<std::string> operators = operators_of(d, p.name);
        device::Program program{p.name, p.target, p.graph, p.inputs, p.outputs, {}, {}};
        for (auto* tensors : {&program.inputs, &program.outputs})
            for (TensorInfo& t : *tensors)
                if (!t.hw) t.hw = t.cpu;
        for (const DataType type : {DataType::float32, DataType::bf16}) {
            const bool can = p.kind == PartitionKind::npu &&
                             softnpu::bf16_products() != softnpu::Bf16Products::none;
            if (type == DataType::bf16 && !can) continue;
            auto plan = softnpu::Lowering(program, type, 2).run([](bool) { return nullptr; });
            ASSERT_TRUE(plan) << plan.error().message;
            std::set<std::string> seen;
            std::string last;
            for (const auto& step : plan->steps) {
                EXPECT_TRUE(operators.contains(step->op)) << step->op << " of " << step->name;
                // One operator's steps follow each other.
                EXPECT_TRUE(step->op == last || seen.insert(step->op).second) << step->op;
                last = step->op;
            }
            for (const std::string& name : operators)
                EXPECT_TRUE(!name.starts_with(p.name + '/') || seen.contains(name))
                    << name << " has no step";
        }
    }
}

TEST(StatsDescriptor, EachStepBelongsToOneOperator) {
    check_steps(compiled(mixed(), request(70)));
    CompileRequest quantised = request(70);
    quantised.quantised_inputs = quantised.quantised_outputs = true;
    check_steps(compiled(mixed(), quantised));
}

class StepsOfModels : public testing::TestWithParam<const char*> {};
TEST_P(StepsOfModels, BelongToOneOperatorEach) {
    const char* shared = std::getenv("VARTML_SHARED");
    const auto file =
        std::filesystem::path(shared ? shared : "") / "models" / GetParam() / "model.onnx";
    if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not there";
    for (const char* tessellate : {"", "default"}) {
        CompileRequest r = request(70);
        r.model = file.string();
        r.tessellate = tessellate;
        std::string ignored;
        const auto model = compile_in_memory(r, &ignored, nullptr);
        ASSERT_TRUE(model) << model.error().message;
        check_steps(*model);
    }
}
INSTANTIATE_TEST_SUITE_P(All, StepsOfModels,
                         testing::Values("hand_landmark", "lightperson", "mnist_cntk",
                                         "shufflenet_v2_int8", "yolox_nano_416", "yunet_n_320"));

// ---- figures and warnings

TEST(PerfMetrics, AddUpPerPartition) {
    const CompiledModel model = compiled(mixed(), request(40));
    const PerfMetrics m = measure(model, *device::find_target("softnpu"));
    ASSERT_EQ(m.partitions.size(), 2u);
    const PerfFigures &npu = m.partitions[0], &cpu = m.partitions[1];
    EXPECT_EQ(npu.operators, 2u);
    EXPECT_EQ(npu.macs, 256u * 20 * 27 + 256 * 8 * 20);
    EXPECT_EQ(npu.other_operations, 256u * 20);
    EXPECT_EQ(npu.constant_bytes, 4u * (20 * 27 + 8 * 20));
    EXPECT_EQ(npu.conversions, 1u);
    EXPECT_EQ(npu.barriers, 3u);
    EXPECT_EQ(npu.first_read_bytes, npu.read_bytes + npu.constant_bytes);
    EXPECT_GT(npu.cycles, 0u);
    EXPECT_EQ(cpu.cycles, 0u);
    EXPECT_EQ(m.total.operators, 3u);
    EXPECT_EQ(m.total.macs, npu.macs);
    EXPECT_NE(metrics_text(m).find("compiler estimates"), std::string::npos);
    EXPECT_NE(metrics_json(m).find("\"source\": \"compiler estimates\""), std::string::npos);
}

// The public notebook shows 18446744060020916224 multiply-accumulates: a wrapped sum.
TEST(PerfMetrics, NeverWrap) {
    // 2^30 places of 2^10 filters of 2^10 channels of 2^20 elements: 2^70, of tensors that each
    // fit.
    const graph::Graph g = graph::must_parse(R"(graph g
input %x : f32[1,1024,32768,32768]
input %w : f32[1024,1024,1024,1024]
%y = Conv %x, %w {dilations=[1,1], group=1, pads=[512,512,511,511], strides=[1,1]} : f32[1,1024,32768,32768]
%z = Relu %y : f32[1,1024,32768,32768]
output %z
)");
    EXPECT_EQ(graph::count_macs(g, g.nodes[0]), beyond_count);
    EXPECT_EQ(graph::count_ops(g, g.nodes[0]), beyond_count);
    CompiledModel m;
    m.device = "softnpu";
    m.actual_batch_size = m.desired_batch_size = 4;
    artifact::Partition p;
    p.name = "vaiml_par_0";
    for (const auto* ids : {&g.inputs, &g.outputs})
        for (const graph::ValueId id : *ids) {
            TensorInfo t;
            t.name = g.value(id).name;
            t.cpu.shape = {1};
            (ids == &g.inputs ? p.inputs : p.outputs).push_back(t);
        }
    p.graph = g;
    m.partitions.push_back(p);
    p.name = "vaiml_par_1";
    m.partitions.push_back(p);
    m.execution_order = {0, 1};
    const PerfMetrics metrics = measure(m, *device::find_target("softnpu"));
    EXPECT_EQ(metrics.partitions[0].macs, beyond_count);
    EXPECT_EQ(metrics.total.macs, beyond_count);
    EXPECT_EQ(metrics.total.other_operations, beyond_count);
    EXPECT_EQ(metrics.total.written_bytes, 2u * 4 * 4 * (uint64_t{1} << 40));
    EXPECT_NE(metrics_json(metrics).find("\"macs\": null"), std::string::npos);
    EXPECT_NE(metrics_text(metrics).find("more than 64 bits"), std::string::npos);
    EXPECT_EQ(saturating_sum(beyond_count - 1, 1), beyond_count);
    EXPECT_EQ(saturating_sum(beyond_count - 1, 2), beyond_count);
    EXPECT_EQ(saturating_product(uint64_t{1} << 32, uint64_t{1} << 32), beyond_count);
    EXPECT_EQ(saturating_product(uint64_t{1} << 32, (uint64_t{1} << 32) - 1),
              (uint64_t{1} << 32) * ((uint64_t{1} << 32) - 1));
}

std::vector<std::string> warnings_of(const CompiledModel& model) {
    return perf_warnings(model, *device::find_target(model.device));
}

size_t count_of(const std::vector<std::string>& lines, const std::string& start) {
    return static_cast<size_t>(std::ranges::count_if(
        lines, [&](const std::string& line) { return line.starts_with(start); }));
}

TEST(PerfWarnings, NameOperatorsAndTensors) {
    const auto lines = warnings_of(compiled(mixed(), request(40)));
    EXPECT_EQ(count_of(lines,
                       "performance warning PW01: places_node: NonZero runs on the CPU in "
                       "vaiml_cpu_subgraph_0: "),
              1u);
    EXPECT_EQ(count_of(lines,
                       "performance warning PW02: images: is converted, fp32 NCHW to bf16 "
                       "HCWNC4, at the border of vaiml_par_0: "),
              1u);
    EXPECT_EQ(count_of(lines, "performance warning PW02: r: "), 1u);
    EXPECT_EQ(count_of(lines, "performance warning PW03"), 0u);  // 3 of 4 channels: 25 %, not more
    EXPECT_EQ(count_of(lines, "performance warning PW04"), 0u);
    EXPECT_EQ(count_of(lines, "performance warning PW05"), 0u);
    EXPECT_EQ(count_of(lines, "performance warning PW07: d_node: Conv has 0."), 1u);
}

TEST(PerfWarnings, SeePaddingAndSmallerBatches) {
    TinyOnnx m;
    m.input("two", {1, 2, 8, 8}).weights("w", {9, 2, 1, 1});
    m.node("Conv", {"two", "w"}, {"nine"}).node("Softmax", {"nine"}, {"y"}).output("y");
    CompileRequest r = request(40);
    r.batch_size = 200;
    r.device_memory_limit = 40000;
    const CompiledModel model = compiled(m, r);
    ASSERT_LT(model.actual_batch_size, 200u);
    const auto lines = warnings_of(model);
    EXPECT_EQ(count_of(lines,
                       "performance warning PW03: two: 50.0 % of its bytes in layout HCWNC4 "
                       "are padding"),
              1u);
    EXPECT_EQ(count_of(lines, "performance warning PW05: m: has batch size " +
                                  std::to_string(model.actual_batch_size) + ", 200 were requested"),
              1u);
    // Behind the last convolution, so it stays f32.
    EXPECT_EQ(count_of(lines, "performance warning PW06: y_node: Softmax works in float32"), 1u);
    // The smaller batch costs most.
    ASSERT_FALSE(lines.empty());
    EXPECT_TRUE(lines[0].starts_with("performance warning PW05"));
}

TEST(PerfWarnings, SeeMoreThanOneNpuPartition) {
    TinyOnnx m;
    m.input("x", {4, 4}).node("Exp", {"x"}, {"a"}).node("Trilu", {"a"}, {"b"});
    m.node("Exp", {"b"}, {"y"}).output("y");
    const CompiledModel model = compiled(m, request(40));
    ASSERT_EQ(model.partitions.size(), 3u);
    EXPECT_EQ(count_of(warnings_of(model),
                       "performance warning PW04: m: has 2 NPU partitions; 128 bytes pass"),
              1u);
}

}  // namespace
}  // namespace vartml::compiler
