// SPDX-License-Identifier: Apache-2.0
#include "lib/verify/computed.h"

#include <algorithm>
#include <any>
#include <iterator>
#include <string_view>

namespace vartml::verify {
namespace {

// Scale of the dequantise that made an output, seen through operators that only move elements.
std::optional<double> last_dequantise(const graph::Graph& graph, const std::string& output) {
    constexpr std::string_view movers[] = {"Reshape",   "Flatten", "Transpose", "Squeeze",
                                           "Unsqueeze", "Slice",   "Identity"};
    const auto found = std::ranges::find_if(
        graph.outputs, [&](graph::ValueId id) { return graph.value(id).name == output; });
    if (found == graph.outputs.end()) return std::nullopt;
    const graph::Uses uses = graph::find_uses(graph);
    graph::ValueId value = *found;
    for (;;) {
        const int32_t index = uses.producer[static_cast<size_t>(value)];
        if (index < 0) return std::nullopt;
        const graph::Node& node = graph.nodes[static_cast<size_t>(index)];
        if (node.kind == "DequantizeLinear" && node.inputs.size() > 1) {
            const graph::ValueId scale = node.inputs[1];
            if (scale == graph::none || !graph.value(scale).constant) return std::nullopt;
            const auto scales = graph.value(scale).constant->as<float>();
            if (graph.value(scale).type.data_type != DataType::float32 || scales.empty())
                return std::nullopt;
            return *std::ranges::max_element(scales);
        }
        if (std::ranges::find(movers, std::string_view(node.kind)) == std::end(movers))
            return std::nullopt;
        value = node.inputs[0];
    }
}

}  // namespace

std::optional<double> step_of(const artifact::CompiledModel& model, const vart::Runner& runner,
                              const std::string& output) {
    const auto& quant = runner.get_quant_parameters(output);
    if (quant.rounding_mode != vart::RoundingMode::UNKNOWN) return quant.scale;
    for (const auto& partition : model.partitions)
        if (const auto step = last_dequantise(partition.graph, output)) return step;
    return std::nullopt;
}

std::string computed_type(const vart::Runner& runner, const std::string& output) {
    const auto narrow = [](vart::DataType type) {
        return type == vart::DataType::BF16 ? "bf16" : type == vart::DataType::FP16 ? "fp16" : "";
    };
    for (const auto& info :
         runner.get_tensors_info(vart::TensorDirection::INPUT, vart::TensorType::HW))
        if (*narrow(info.data_type)) return narrow(info.data_type);
    for (const auto& info :
         runner.get_tensors_info(vart::TensorDirection::OUTPUT, vart::TensorType::HW))
        if (info.name == output && *narrow(info.data_type)) return narrow(info.data_type);
    return std::any_cast<std::string>(runner.get_property("compute_type"));
}

}  // namespace vartml::verify
