// SPDX-License-Identifier: Apache-2.0
// Small compiled models, made by hand.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/graph/memory_plan.h"
#include "lib/graph/text.h"
#include "lib/model/compiled_model.h"

namespace vartml::test {

inline graph::Graph parse_graph(const std::string& text) {
    auto graph = graph::parse(text);
    EXPECT_TRUE(graph) << graph.error().message;
    return graph ? *graph : graph::Graph();
}

// CPU view of a graph value, NCHW for four dimensions.
inline TensorInfo border_tensor(const graph::Graph& graph, graph::ValueId id) {
    const graph::Value& value = graph.value(id);
    std::vector<uint32_t> shape(value.type.shape.begin(), value.type.shape.end());
    if (shape.empty()) shape = {1};
    TensorInfo info;
    info.name = value.name;
    const auto layout = shape.size() == 4 ? Layout::NCHW : Layout::GENERIC;
    info.cpu = make_view(value.type.data_type, layout, std::move(shape));
    info.data_dependent = value.data_dependent;
    return info;
}

// A partition with a planned arena and one layer per node.
inline artifact::Partition make_partition(std::string name, graph::Graph graph) {
    artifact::Partition p;
    p.name = std::move(name);
    const bool cpu = p.name.starts_with("vaiml_cpu");
    p.kind = cpu ? artifact::PartitionKind::cpu : artifact::PartitionKind::npu;
    p.target = cpu ? "cpu-1" : "softnpu-1";
    p.columns = cpu ? 0 : 4;
    graph.name = p.name;
    std::vector<graph::Block> blocks;
    std::vector<size_t> ids;
    const graph::Uses uses = graph::find_uses(graph);
    for (size_t i = 0; i < graph.values.size(); ++i) {
        if (graph.values[i].constant || uses.producer[i] < 0 || uses.is_output[i]) continue;
        const int32_t first = uses.producer[i];
        const int32_t last = uses.consumers[i].empty() ? first : uses.consumers[i].back();
        blocks.push_back({graph.values[i].type.size_bytes(), first, last});
        ids.push_back(i);
    }
    const graph::MemoryPlan plan = graph::plan_memory(blocks);
    p.arena_offsets.assign(graph.values.size(), 0);
    for (size_t i = 0; i < ids.size(); ++i) p.arena_offsets[ids[i]] = plan.offsets[i];
    p.arena_size_bytes = plan.size_bytes;
    for (const graph::ValueId id : graph.inputs) p.inputs.push_back(border_tensor(graph, id));
    for (const graph::ValueId id : graph.outputs) p.outputs.push_back(border_tensor(graph, id));
    for (size_t i = 0; i < graph.nodes.size() && !cpu; ++i) {
        const uint64_t start = i * 100;
        p.layers.push_back({"MLA_0/op_" + std::to_string(i), start, start + 99, 7 * i, 64, 32});
        p.node_layers.push_back(static_cast<int32_t>(i));
    }
    p.operators = static_cast<uint32_t>(graph.nodes.size());
    p.ops = 1000 * p.operators;
    p.graph = std::move(graph);
    return p;
}

inline artifact::CompiledModel make_model(std::vector<artifact::Partition> partitions) {
    artifact::CompiledModel m;
    m.tool_version = "1.0.0";
    m.device = "softnpu";
    m.target = "softnpu-1";
    m.model_name = "tiny";
    m.model_signature = "00112233445566778899aabbccddeeff";
    for (uint8_t i = 0; i < 32; ++i) m.config_sha256[i] = i;
    m.summary.os = "Linux X64";
    m.summary.commit = std::string(40, '0');
    m.summary.model = "tiny.onnx";
    m.summary.model_data_type = "float32";
    m.summary.device_data_type = "bfloat16";
    for (uint32_t i = 0; i < partitions.size(); ++i) {
        const artifact::Partition& p = partitions[i];
        m.execution_order.push_back(i);
        m.summary.total.operators += p.operators;
        m.summary.total.ops += p.ops;
        m.summary.total.subgraphs += 1;
        if (p.kind == artifact::PartitionKind::npu) {
            m.summary.supported.operators += p.operators;
            m.summary.supported.ops += p.ops;
            m.summary.supported.subgraphs += 1;
        } else {
            m.compilation = artifact::Compilation::cpu_partition;
            for (const graph::Node& n : p.graph.nodes)
                m.summary.fallbacks.push_back({n.name, n.kind, "unsupported-operator",
                                               "not implemented on the NPU",
                                               static_cast<int32_t>(i)});
        }
    }
    m.summary.offloaded = m.summary.supported;
    m.partitions = std::move(partitions);
    m.files.push_back({"final-vaiml-pass-summary.txt", "summary\n"});
    m.files.push_back({"modelinfo", "[modelinfo]\nversion=1.0\n"});
    return m;
}

// Connects partition after partition by tensor names; what no partition makes is an input of the
// model, what no partition reads is an output.
inline artifact::CompiledModel connect(artifact::CompiledModel m) {
    const auto add = [&](int32_t from, int32_t to, const TensorInfo& t) {
        m.edges.push_back(
            {from, to, "buf_" + t.name, t.name, t.cpu.shape, t.cpu.data_type, t.data_dependent});
    };
    const auto maker = [&](const std::string& name) {
        for (size_t i = 0; i < m.partitions.size(); ++i)
            for (const TensorInfo& t : m.partitions[i].outputs)
                if (t.name == name) return static_cast<int32_t>(i);
        return -1;
    };
    const auto is_read = [&](const std::string& name) {
        for (const artifact::Partition& p : m.partitions)
            for (const TensorInfo& t : p.inputs)
                if (t.name == name) return true;
        return false;
    };
    for (size_t i = 0; i < m.partitions.size(); ++i) {
        for (const TensorInfo& t : m.partitions[i].inputs) {
            const int32_t from = maker(t.name);
            if (from < 0 &&
                std::ranges::find(m.inputs, t.name, &TensorInfo::name) == m.inputs.end())
                m.inputs.push_back(t);
            add(from, static_cast<int32_t>(i), t);
        }
        for (const TensorInfo& t : m.partitions[i].outputs) {
            if (is_read(t.name)) continue;
            m.outputs.push_back(t);
            add(static_cast<int32_t>(i), -1, t);
        }
    }
    return m;
}

// Convolution and activation on the NPU, integer HW views with quantisation at the border.
inline artifact::CompiledModel conv_model() {
    artifact::Partition p = make_partition("vaiml_par_0", parse_graph(R"(graph g
input %images : f32[1,3,8,8]
const %w : f32[2,3,1,1] = {1, 2, 3, 4, 5, 6}
const %b : f32[2] = {0.5, -0.5}
%c = Conv %images, %w, %b {dilations=[1,1], group=1, pads=[0,0,0,0], strides=[1,1]} : f32[1,2,8,8]
%y = Relu %c : f32[1,2,8,8] @act from "relu_1", "other"
output %y
)"));
    p.inputs[0].hw = hw_view(p.inputs[0].cpu, Layout::HCWNC4, DataType::int8);
    p.inputs[0].hw->quantisation = Quantisation{0.0078125, 3};
    p.inputs[0].picture = "rgb";
    p.outputs[0].hw = hw_view(p.outputs[0].cpu, Layout::HCWNC16, DataType::bf16);
    return connect(make_model({std::move(p)}));
}

// NPU, CPU, NPU: values of several types, a scalar, an absent input, every kind of attribute.
inline artifact::CompiledModel mixed_model() {
    artifact::Partition first = make_partition("vaiml_par_0", parse_graph(R"(graph g
input %x : f32[2,3]
const %scale : f32[] = {2}
%y = Mul %x, %scale : f32[2,3]
output %y
)"));
    artifact::Partition cpu = make_partition("vaiml_cpu_subgraph_0", parse_graph(R"(graph g
input %y : f32[2,3]
%c = Clip %y {max=6.5, min=-1.0} : f32[2,3]
%q = Cast %c {to="i64"} : i64[2,3]
%p = Pad %q {mode="constant", pads=[0,0,1,0], value=0.0} : i64[3,3]
%u = Softmax %c {axis=1} : f32[2,3]
output %p
output %u
)"));
    artifact::Partition last = make_partition("vaiml_par_1", parse_graph(R"(graph g
input %u : f32[2,3]
%s = Sigmoid %u : f32[2,3]
output %s
)"));
    return connect(make_model({std::move(first), std::move(cpu), std::move(last)}));
}

// A CPU partition with one node of the kind, from x to y; for OnnxRuntime with the bytes of a
// model.
inline artifact::CompiledModel one_node_model(const std::string& kind, const std::string& target,
                                              const std::string& model = "") {
    graph::Graph g;
    const auto x = g.add_value("x", {DataType::float32, {1, 4}});
    const auto y = g.add_value("y", {DataType::float32, {1, 4}});
    graph::Node n;
    n.kind = kind;
    n.name = "n";
    n.sources = {"n"};
    n.inputs = {x};
    n.outputs = {y};
    if (kind == "OnnxRuntime") {
        const graph::Type bytes{DataType::uint8, {static_cast<int64_t>(model.size())}};
        n.domain = "vartml";
        n.inputs = {
            g.add_constant("n/model", bytes, graph::make_constant(std::as_bytes(std::span(model)))),
            x};
        n.attributes["types"] = graph::Strings{"f32[1,4]"};
    }
    g.inputs = {x};
    g.outputs = {y};
    g.nodes = {n};
    auto partition = make_partition("vaiml_cpu_subgraph_0", std::move(g));
    partition.target = target;
    return connect(make_model({std::move(partition)}));
}

}  // namespace vartml::test
