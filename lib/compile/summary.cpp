// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/summary.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "lib/base/json.h"
#include "lib/base/text.h"
#include "lib/graph/ops.h"
#include "lib/model/program.h"

namespace vartml::compiler {
namespace {

using artifact::CompiledModel;
using artifact::Partition;
using artifact::PartitionKind;
using Json = nlohmann::ordered_json;

std::string format(const char* pattern, double value) {
    char text[64];
    std::snprintf(text, sizeof text, pattern, value);
    return text;
}
std::string gops(uint64_t ops) {
    return format("%.3f", static_cast<double>(ops) / 1e9);
}
double percent_of(uint64_t part, uint64_t whole) {
    return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}
std::string share(uint64_t part, uint64_t whole) {
    return " (" + format("%.3f", percent_of(part, whole)) + "%)";
}

std::string partition_stats(const CompiledModel& model, const Partition& p) {
    const artifact::Summary& s = model.summary;
    const std::string type = p.kind == PartitionKind::npu ? "npu" : "cpu";
    const std::string engine =
        p.target == artifact::onnxruntime_target ? "\n    Engine: onnxruntime" : "";
    return "Subgraph " + p.name + " stats:\n    Type: " + type + engine +
           "\n    Operators: " + std::to_string(p.operators) +
           share(p.operators, s.total.operators) + "\n    GOPs : " + gops(p.ops) +
           share(p.ops, s.total.ops) + "  OPs: " + with_commas(p.ops) + '\n';
}

// "Conv x13, Relu x12": by count, then name.
std::string count_operators(const std::vector<const artifact::Fallback*>& nodes) {
    std::map<std::string, size_t> counts;
    for (const auto* node : nodes) ++counts[node->op_type];
    std::vector<std::pair<std::string, size_t>> sorted(counts.begin(), counts.end());
    std::ranges::stable_sort(sorted,
                             [](const auto& a, const auto& b) { return a.second > b.second; });
    std::string text;
    for (const auto& [op, count] : sorted)
        text += (text.empty() ? "" : ", ") + op + " x" + std::to_string(count);
    return text;
}

std::string fallback_groups(const artifact::Summary& summary) {
    if (summary.fallbacks.empty()) return "    none\n";
    std::map<std::string, std::vector<const artifact::Fallback*>> by_code;
    for (const auto& fallback : summary.fallbacks) by_code[fallback.code].push_back(&fallback);
    std::vector<std::pair<std::string, std::vector<const artifact::Fallback*>>> groups(
        by_code.begin(), by_code.end());
    std::ranges::stable_sort(
        groups, [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
    std::string text;
    for (const auto& [code, nodes] : groups)
        text += "    " + code + " (" + std::to_string(nodes.size()) + "): " + nodes[0]->text +
                "\n        " + count_operators(nodes) + '\n';
    return text;
}

std::string_view compilation_name(const CompiledModel& model) {
    return model.compilation == artifact::Compilation::standard ? "standard" : "cpu_partition";
}

std::string own_section(const CompiledModel& model) {
    const artifact::Summary& s = model.summary;
    std::string text =
        "\n--------- Additional Information (" + model.tool_version + ") ----------\n";
    text += "Compilation: " + std::string(compilation_name(model)) + '\n';
    text += "Batch size: desired " + std::to_string(model.desired_batch_size) + ", actual " +
            std::to_string(model.actual_batch_size) + '\n';
    text += "Operators folded at import: " + std::to_string(s.folded) + '\n';
    text += "Stats for CPU subgraphs\n";
    for (const Partition& p : model.partitions)
        if (p.kind == PartitionKind::cpu) text += partition_stats(model, p);
    if (model.compilation == artifact::Compilation::standard && !s.fallbacks.empty())
        text += "none (left to another runtime)\n";
    return text + "Fallback reasons\n" + fallback_groups(s);
}

// ---- JSON
// ----------------------------------------------------------------------------------------------------------

}  // namespace

std::string summary_text(const CompiledModel& model) {
    const artifact::Summary& s = model.summary;
    const auto operators = [&](uint32_t n) {
        return std::to_string(n) + share(n, s.total.operators) + '\n';
    };
    const auto giga = [&](uint64_t ops) { return gops(ops) + share(ops, s.total.ops) + '\n'; };
    std::string text = "--------- Final Summary of VAIML Pass ----------\n";
    text += "OS: " + s.os + "\nVAIP commit: " + s.commit + "\nModel: " + s.model +
            "\nModel signature: " + model.model_signature + "\nDevice: " + model.device +
            "\nModel data type: " + s.model_data_type +
            "\nDevice data type: " + s.device_data_type + '\n';
    text += "Number of operators in the model: " + std::to_string(s.total.operators) + '\n';
    text += "GOPs of the model: " + format("%g", static_cast<double>(s.total.ops) / 1e9) + '\n';
    text += "Number of operators supported by VAIML: " + operators(s.supported.operators);
    text += "GOPs supported by VAIML: " + giga(s.supported.ops);
    text +=
        "Number of subgraphs supported by VAIML: " + std::to_string(s.supported.subgraphs) + '\n';
    text += "Number of operators offloaded by VAIML: " + operators(s.offloaded.operators);
    text += "GOPs offloaded by VAIML: " + giga(s.offloaded.ops);
    text +=
        "Number of subgraphs offloaded by VAIML: " + std::to_string(s.offloaded.subgraphs) + '\n';
    text += "Number of subgraphs with compilation errors (fall back to CPU): " +
            std::to_string(s.compile_errors) + '\n';
    text += "Number of subgraphs below " + format("%g", s.threshold_percent) +
            "% GOPs threshold (fall back to CPU): " + std::to_string(s.below_threshold) + '\n';
    text += "Number of subgraphs above max number of subgraphs allowed(" +
            std::to_string(s.max_subgraphs) + "): " + std::to_string(s.above_max) +
            " (fall back to CPU)\n";
    text += "Stats for offloaded subgraphs\n";
    for (const Partition& p : model.partitions)
        if (p.kind == PartitionKind::npu) text += partition_stats(model, p);
    return text + own_section(model);
}

std::string summary_json(const CompiledModel& model) {
    const artifact::Summary& s = model.summary;
    const auto count = [](const artifact::Count& c) {
        return Json{{"operators", c.operators}, {"ops", c.ops}, {"subgraphs", c.subgraphs}};
    };
    Json json = {{"format_version", 1},
                 {"tool_version", model.tool_version},
                 {"os", s.os},
                 {"commit", s.commit},
                 {"model", s.model},
                 {"model_signature", model.model_signature},
                 {"device", model.device},
                 {"model_data_type", s.model_data_type},
                 {"device_data_type", s.device_data_type},
                 {"total", count(s.total)},
                 {"supported", count(s.supported)},
                 {"offloaded", count(s.offloaded)},
                 {"compile_errors", s.compile_errors},
                 {"below_threshold", s.below_threshold},
                 {"threshold_gops_percent", s.threshold_percent},
                 {"above_max", s.above_max},
                 {"max_subgraphs", s.max_subgraphs},
                 {"compilation", compilation_name(model)},
                 {"desired_batch_size", model.desired_batch_size},
                 {"actual_batch_size", model.actual_batch_size},
                 {"folded", s.folded}};
    json["partitions"] = Json::array();
    for (const Partition& p : model.partitions) {
        Json partition = {{"name", p.name},
                          {"kind", p.kind == PartitionKind::npu ? "npu" : "cpu"},
                          {"operators", p.operators},
                          {"ops", p.ops},
                          {"columns", p.columns}};
        if (p.target == artifact::onnxruntime_target) partition["engine"] = "onnxruntime";
        json["partitions"].push_back(std::move(partition));
    }
    json["fallbacks"] = Json::array();
    for (const artifact::Fallback& f : s.fallbacks) {
        Json partition = f.partition < 0
                             ? Json()
                             : Json(model.partitions[static_cast<size_t>(f.partition)].name);
        Json candidate =
            f.candidate < 0 ? Json() : Json("candidate_" + std::to_string(f.candidate));
        json["fallbacks"].push_back({{"node", f.node},
                                     {"op_type", f.op_type},
                                     {"domain", f.domain},
                                     {"code", f.code},
                                     {"text", f.text},
                                     {"candidate", std::move(candidate)},
                                     {"partition", std::move(partition)}});
    }
    return json_file_text(json);
}

namespace {

using graph::Graph;
using graph::Node;

struct WorkTypes {
    bool f32 = false, f16 = false, s8 = false, u8 = false;
};

WorkTypes work_types(const Graph& graph) {
    WorkTypes types;
    std::set<graph::ValueId> dequantised;
    for (const Node& node : graph.nodes) {
        const bool quantised = has_trait(node, graph::Trait::codes);
        for (const graph::ValueId id : node.inputs) {
            if (!quantised || id == graph::none) continue;
            types.s8 = types.s8 || graph.value(id).type.data_type == DataType::int8;
            types.u8 = types.u8 || graph.value(id).type.data_type == DataType::uint8;
        }
        if (node.kind == "DequantizeLinear") dequantised.insert(node.outputs[0]);
        if (!has_trait(node, graph::Trait::product) ||
            (!node.inputs.empty() && dequantised.contains(node.inputs[0])))
            continue;
        const DataType type = graph.value(node.outputs[0]).type.data_type;
        (type == DataType::fp16 || type == DataType::bf16 ? types.f16 : types.f32) = true;
    }
    if (!types.f16 && !types.s8 && !types.u8) types.f32 = true;
    return types;
}

std::string join(const std::vector<std::string>& types) {
    std::string text;
    for (const std::string& type : types) text += (text.empty() ? "" : " and ") + type;
    return text;
}

}  // namespace

DataTypes name_data_types(const Graph& graph, bool convert_floats) {
    const WorkTypes types = work_types(graph);
    std::vector<std::string> model, device;
    if (types.f32) model.push_back("float32");
    if (types.f16) model.push_back("float16");
    if (types.s8) model.push_back("int8 quantized");
    if (types.u8 && !types.s8) model.push_back("uint8 quantized");
    if (types.f32) device.push_back(convert_floats ? "bfloat16" : "float32");
    if (types.f16) device.push_back("float16");
    if (types.s8 || types.u8) device.push_back("int8");
    return {join(model), join(device)};
}

}  // namespace vartml::compiler
