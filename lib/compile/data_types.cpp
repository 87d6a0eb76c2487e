// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/data_types.h"

#include <set>
#include <string_view>
#include <vector>

#include "lib/graph/ops.h"

namespace vartml::compiler {
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
