// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/verify/pixel_range.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "lib/graph/ops.h"

namespace vartml::verify {
namespace {

using graph::Graph;
using graph::Node;
using graph::Trait;
using graph::ValueId;

// Pixels from 0 to 1 have means up to 1 and deviations of a quarter; from 0 to 255 means of 100 and
// deviations of 50.
constexpr double least_mean = 4, least_divisor = 10, most_factor = 0.1;

bool is_mover(const Node& node) {
    constexpr std::string_view others[] = {"Cast", "Concat", "Pad", "Resize"};
    return has_trait(node, Trait::reshapes | Trait::permutes | Trait::picks) ||
           std::ranges::find(others, node.kind) != std::end(others);
}

struct Magnitude {
    double least = HUGE_VAL, most = 0;
};

// Of the numbers of a constant; those of anything else are not known.
Magnitude magnitude_of(const Graph& graph, ValueId id) {
    if (id == graph::none) return {};
    const graph::Value& value = graph.value(id);
    Magnitude found;
    if (!value.constant || value.type.data_type != DataType::float32) return found;
    for (const float v : value.constant->as<float>()) {
        const double size = std::abs(v);
        found.least = std::min(found.least, size);
        found.most = std::max(found.most, size);
    }
    return found;
}

enum class Says { bytes, nothing, goes_on };

Says read(const Graph& graph, const Node& node, ValueId pixels) {
    const std::string_view base = node.kind;
    if (is_mover(node)) return Says::goes_on;
    if (base == "BatchNormalization" && node.inputs.size() > 3)
        return magnitude_of(graph, node.inputs[3]).most >= least_mean ? Says::bytes : Says::nothing;
    if (node.inputs.size() < 2) return Says::nothing;
    const bool is_left = node.inputs[0] == pixels;
    const Magnitude other = magnitude_of(graph, node.inputs[is_left ? 1 : 0]);
    if (other.least > other.most) return Says::nothing;
    if (base == "Sub" || base == "Add") {
        if (other.most == 0) return Says::goes_on;
        return other.most >= least_mean ? Says::bytes : Says::nothing;
    }
    if (other.least == 1 && other.most == 1 && (base == "Mul" || (base == "Div" && is_left)))
        return Says::goes_on;
    if (base == "Mul") return other.most <= most_factor ? Says::bytes : Says::nothing;
    if (base == "Div" && is_left) return other.least >= least_divisor ? Says::bytes : Says::nothing;
    return Says::nothing;
}

}  // namespace

bool takes_bytes(const Graph& graph, ValueId input) {
    const graph::Uses uses = graph::find_uses(graph);
    std::vector<ValueId> pixels = {input};
    for (size_t i = 0; i < pixels.size(); ++i)
        for (const int32_t user : uses.consumers[static_cast<size_t>(pixels[i])]) {
            const Node& node = graph.nodes[static_cast<size_t>(user)];
            const Says says = read(graph, node, pixels[i]);
            if (says == Says::bytes) return true;
            if (says == Says::nothing) continue;
            for (const ValueId out : node.outputs)
                if (out != graph::none && std::ranges::find(pixels, out) == pixels.end())
                    pixels.push_back(out);
        }
    return false;
}

}  // namespace vartml::verify
