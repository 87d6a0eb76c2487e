// SPDX-License-Identifier: Apache-2.0
// fold_batch_norm and fold_scale_bias.
#include "lib/compile/passes/passes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "lib/graph/numbers.h"
#include "lib/graph/ops.h"

namespace vartml::compiler {
namespace {

using graph::Node;
using graph::none;
using graph::Type;
using graph::ValueId;

// Output channel of each element of the weight, as a function of its index.
struct WeightLayout {
    int64_t outer = 1, channels = 1, inner = 1;  // [outer][channels][inner]
    int64_t channels_per_group = 0;              // ConvTranspose: `channels` are those of one group
    int64_t rows_per_group = 0;                  // and groups follow each other along `outer`

    size_t channel(size_t index) const {
        const int64_t at = static_cast<int64_t>(index) / inner;
        const int64_t channel = at % channels;
        if (!channels_per_group) return static_cast<size_t>(channel);
        return static_cast<size_t>(at / channels / rows_per_group * channels_per_group + channel);
    }
};

WeightLayout layout_of(const Node& node, const Type& weight) {
    const auto& shape = weight.shape;
    WeightLayout layout;
    if (node.kind == "MatMul" || (node.kind == "Gemm" && !node.get("transB", int64_t{0}))) {
        layout.outer = shape[0];
        layout.channels = shape[1];
    } else if (node.kind == "ConvTranspose") {
        const int64_t group = node.get("group", int64_t{1});
        layout.outer = shape[0];
        layout.channels = layout.channels_per_group = shape[1];
        layout.rows_per_group = shape[0] / group;
        layout.inner = weight.elements() / std::max<int64_t>(shape[0] * shape[1], 1);
    } else {
        layout.channels = shape[0];
        layout.inner = weight.elements() / std::max<int64_t>(shape[0], 1);
    }
    return layout;
}

// The bias as one number per channel, zeros where there is none.
std::vector<double> read_bias(const Rewriter& rewriter, const Node& node) {
    const size_t count = channels(rewriter, node);
    std::vector<double> bias(count, 0);
    if (node.inputs.size() < 3 || node.inputs[2] == none) return bias;
    const graph::Value& value = rewriter.value(node.inputs[2]);
    const double factor = node.kind == "Gemm" ? node.get("beta", 1.0F) : 1;
    const auto numbers = graph::read_numbers<double>(value);
    for (size_t i = 0; i < count; ++i) bias[i] = factor * numbers[numbers.size() == 1 ? 0 : i];
    return bias;
}

// fp16 ends at 65504, and its numbers below 2^-14 have fewer digits than others.
constexpr double largest_half = 65504, smallest_half = 0x1p-14;

// Whether constants of the type hold the weights and biases: none too large, and of each channel
// the largest weight with all of its digits; beside that one the others may lose some. A channel
// that has next to nothing beside its bias may lose all. Beside other channels it may not: who
// reads it on its own reads its digits.
bool holds(DataType type, const WeightLayout& layout, std::span<const double> weight,
           std::span<const double> bias) {
    if (type != DataType::fp16) return true;
    std::vector<double> largest(bias.size(), 0);
    std::vector<bool> rounds(bias.size(), false);
    for (size_t i = 0; i < weight.size(); ++i) {
        const size_t channel = layout.channel(i);
        largest[channel] = std::max(largest[channel], std::fabs(weight[i]));
        if (static_cast<double>(static_cast<_Float16>(weight[i])) != weight[i])
            rounds[channel] = true;
    }
    constexpr double half_digit = 0x1p-11, lost = 0x1p-25;  // of a number; of one below the least
    const double lost_together =
        lost * std::sqrt(static_cast<double>(weight.size()) / static_cast<double>(bias.size()));
    for (size_t c = 0; c < bias.size(); ++c) {
        if (!(largest[c] <= largest_half) || !(std::fabs(bias[c]) <= largest_half)) return false;
        if (rounds[c] && largest[c] < smallest_half &&
            lost_together > half_digit * std::fabs(bias[c]))
            return false;
    }
    return true;
}

// False, and nothing done, where constants of the weights' type do not hold the numbers.
bool set_weight_and_bias(Rewriter& rewriter, size_t index, std::span<const double> weight,
                         std::span<const double> bias) {
    const ValueId old_weight = rewriter.node(index).inputs[1];
    const Type type = rewriter.type(old_weight);
    if (!holds(type.data_type, layout_of(rewriter.node(index), type), weight, bias)) return false;
    const std::string stem = rewriter.value(old_weight).name;
    const ValueId new_weight = rewriter.add_constant(stem, type, weight);
    const ValueId new_bias =
        rewriter.add_constant(rewriter.node(index).name + ".bias",
                              {type.data_type, {static_cast<int64_t>(bias.size())}}, bias);
    Node& node = rewriter.node(index);
    node.inputs.resize(std::max<size_t>(node.inputs.size(), 3), none);
    node.inputs[1] = new_weight;
    node.inputs[2] = new_bias;
    if (node.kind == "Gemm") node.attributes["beta"] = 1.0F;
    rewriter.refresh();
    return true;
}

}  // namespace

bool is_linear(const Rewriter& rewriter, const Node& node) {
    if (!has_trait(node, graph::Trait::product)) return false;
    if (!rewriter.is_constant(node.inputs[1])) return false;
    const Type& weight = rewriter.type(node.inputs[1]);
    if (!graph::is_float(weight.data_type) || weight.elements() == 0) return false;
    if (node.kind == "MatMul" &&
        (weight.shape.size() != 2 || rewriter.type(node.inputs[0]).shape.size() < 2))
        return false;
    if (node.inputs.size() < 3 || node.inputs[2] == none) return true;
    // Of Gemm: not one bias per row.
    const Type& bias = rewriter.type(node.inputs[2]);
    const auto count = static_cast<int64_t>(channels(rewriter, node));
    const bool per_column =
        bias.elements() == 1 || (bias.elements() == count && bias.shape.back() == count);
    return rewriter.is_constant(node.inputs[2]) && per_column;
}

size_t channel_axis(const Rewriter& rewriter, const Node& node) {
    const size_t rank = rewriter.type(node.outputs[0]).shape.size();
    return has_trait(node, graph::Trait::convolution) ? 1 : rank - 1;
}

size_t channels(const Rewriter& rewriter, const Node& node) {
    return static_cast<size_t>(rewriter.type(node.outputs[0]).shape[channel_axis(rewriter, node)]);
}

std::vector<double> per_channel(const Rewriter& rewriter, ValueId constant,
                                std::span<const int64_t> shape, size_t axis) {
    if (!rewriter.is_constant(constant)) return {};
    const Type& type = rewriter.type(constant);
    if (type.shape.size() > shape.size()) return {};
    const size_t shift = shape.size() - type.shape.size();
    for (size_t i = 0; i < type.shape.size(); ++i) {
        if (type.shape[i] != 1 && (shift + i != axis || type.shape[i] != shape[axis])) return {};
    }
    auto numbers = graph::read_numbers<double>(rewriter.value(constant));
    if (numbers.size() == 1) numbers.resize(static_cast<size_t>(shape[axis]), numbers[0]);
    return numbers;
}

bool absorb_affine(Rewriter& rewriter, size_t index, std::span<const double> scale,
                   std::span<const double> shift) {
    const Node& node = rewriter.node(index);
    const size_t count = channels(rewriter, node);
    if (!is_linear(rewriter, node) || scale.size() != count || shift.size() != count) return false;
    auto weight = graph::read_numbers<double>(rewriter.value(node.inputs[1]));
    const WeightLayout layout = layout_of(node, rewriter.type(node.inputs[1]));
    for (size_t i = 0; i < weight.size(); ++i) weight[i] *= scale[layout.channel(i)];
    auto bias = read_bias(rewriter, node);
    for (size_t i = 0; i < count; ++i) bias[i] = bias[i] * scale[i] + shift[i];
    return set_weight_and_bias(rewriter, index, weight, bias);
}

bool absorb_input_affine(Rewriter& rewriter, size_t index, std::span<const double> scale,
                         std::span<const double> shift) {
    const Node& node = rewriter.node(index);
    if (node.kind != "Conv" || !is_linear(rewriter, node)) return false;
    const bool shifts = std::ranges::any_of(shift, [](double v) { return v != 0; });
    const bool pads = std::ranges::any_of(node.get("pads", std::vector<int64_t>()),
                                          [](int64_t v) { return v != 0; });
    // The padding holds zeros, which the shift would have to reach.
    if (shifts && pads) return false;
    const Type& type = rewriter.type(node.inputs[1]);
    // What the shift brings near zero would be the difference of two large numbers, of which 16
    // bits do not hold one.
    if (shifts && size_bytes(type.data_type) < 4) return false;
    auto weight = graph::read_numbers<double>(rewriter.value(node.inputs[1]));
    auto bias = read_bias(rewriter, node);
    const auto per_group = static_cast<size_t>(type.shape[1]);
    const size_t area = weight.size() / static_cast<size_t>(type.shape[0] * type.shape[1]);
    const size_t filters_per_group =
        bias.size() / static_cast<size_t>(node.get("group", int64_t{1}));
    for (size_t i = 0; i < weight.size(); ++i) {
        const size_t filter = i / area / per_group;
        const size_t channel = filter / filters_per_group * per_group + i / area % per_group;
        bias[filter] += weight[i] * shift[channel];
        weight[i] *= scale[channel];
    }
    return set_weight_and_bias(rewriter, index, weight, bias);
}

namespace {

using graph::Node;
using graph::none;
using graph::Type;
using graph::ValueId;

struct Affine {
    std::vector<double> scale, shift;  // per channel; empty: not of this form
    ValueId input = none;
    bool cancels = false;  // input * scale and shift are far larger than their sum
};

// The bounds of an operation that does nothing but bound; nullopt of others.
struct Bounds {
    double low, high;
};
std::optional<Bounds> bounds_of(const graph::Operation& part) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr float most = std::numeric_limits<float>::max();
    if (part.kind == "Relu") return Bounds{0, infinity};
    if (part.kind != "Clip") return std::nullopt;
    const float low = part.get("min", -most), high = part.get("max", most);
    return Bounds{low <= -most ? -infinity : static_cast<double>(low),
                  high >= most ? infinity : static_cast<double>(high)};
}

// What scale and shift make of bounds that come before them; nullopt where that differs from
// channel to channel.
std::optional<Bounds> moved(const Bounds& bounds, const Affine& affine) {
    std::optional<Bounds> result;
    for (size_t c = 0; c < affine.scale.size(); ++c) {
        const double a = affine.scale[c], b = affine.shift[c];
        if (a == 0) return std::nullopt;
        Bounds own{a * bounds.low + b, a * bounds.high + b};
        if (a < 0) std::swap(own.low, own.high);
        if (result && (result->low != own.low || result->high != own.high)) return std::nullopt;
        result = own;
    }
    return result;
}

graph::Operation bounding(const Bounds& bounds) {
    if (bounds.low == 0 && std::isinf(bounds.high)) return {"Relu", {}};
    graph::Operation clip{"Clip", {}};
    if (!std::isinf(bounds.low)) clip.attributes["min"] = static_cast<float>(bounds.low);
    if (!std::isinf(bounds.high)) clip.attributes["max"] = static_cast<float>(bounds.high);
    return clip;
}

// The parts of a node that gives with scale and shift before them what it gave with those behind
// them; nullopt where there are no such parts.
std::optional<std::vector<graph::Operation>> parts_behind(const Node& node, const Affine& affine) {
    if (node.fused.empty()) return node.fused;
    if (node.fused.size() > 1) return std::nullopt;
    if (const auto bounds = bounds_of(node.fused[0])) {
        const auto behind = moved(*bounds, affine);
        return behind ? std::optional(std::vector{bounding(*behind)}) : std::nullopt;
    }
    const bool commutes = node.fused[0].kind == "LeakyRelu" &&
                          std::ranges::all_of(affine.scale, [](double v) { return v > 0; }) &&
                          std::ranges::all_of(affine.shift, [](double v) { return v == 0; });
    return commutes ? std::optional(node.fused) : std::nullopt;
}

// Lets the node that makes `affine.input` give the result of the node at `index`, if it can take
// the scale and shift.
bool fold_into_producer(Rewriter& rewriter, size_t index, const Affine& affine) {
    if (!rewriter.producer(affine.input) || !rewriter.has_one_use(affine.input)) return false;
    const auto host = static_cast<size_t>(rewriter.producer_index(affine.input));
    auto parts = parts_behind(rewriter.node(host), affine);
    if (!parts || !is_linear(rewriter, rewriter.node(host)) ||
        !absorb_affine(rewriter, host, affine.scale, affine.shift))
        return false;
    rewriter.node(host).fused = std::move(*parts);
    rewriter.node(host).outputs = rewriter.node(index).outputs;
    Rewriter::merge_sources(rewriter.node(host), rewriter.node(index));
    rewriter.remove(rewriter.node(index));
    return true;
}

// Lets the convolution that reads the node at `index` read its input instead.
bool fold_into_reader(Rewriter& rewriter, size_t index, const Affine& affine) {
    const ValueId result = rewriter.node(index).outputs[0];
    if (!rewriter.has_one_use(result)) return false;
    const auto reader = static_cast<size_t>(rewriter.readers(result)[0]);
    if (rewriter.node(reader).inputs[0] != result ||
        !absorb_input_affine(rewriter, reader, affine.scale, affine.shift))
        return false;
    Rewriter::merge_sources(rewriter.node(reader), rewriter.node(index));
    rewriter.node(reader).inputs[0] = affine.input;
    rewriter.remove(rewriter.node(index));
    return true;
}

// ---- batch normalisation
// -------------------------------------------------------------------------------------------

Affine affine_of_batch_norm(const Rewriter& rewriter, const Node& node) {
    Affine affine;
    std::vector<double> parameters[4];  // scale, bias, mean, variance
    for (size_t i = 0; i < 4; ++i) {
        if (!rewriter.is_constant(node.inputs[i + 1])) return affine;
        parameters[i] = graph::read_numbers<double>(rewriter.value(node.inputs[i + 1]));
    }
    const double epsilon = node.get("epsilon", 1e-5F);
    for (size_t c = 0; c < parameters[0].size(); ++c) {
        const double scale = parameters[0][c] / std::sqrt(parameters[3][c] + epsilon);
        affine.scale.push_back(scale);
        affine.shift.push_back(parameters[1][c] - parameters[2][c] * scale);
        // The results lie around the bias, as far from it as the factor says.
        const double usual = std::fabs(parameters[0][c]) + std::fabs(parameters[1][c]);
        affine.cancels = affine.cancels || !(std::fabs(affine.shift[c]) <= 4 * usual);
    }
    affine.input = node.inputs[0];
    return affine;
}

bool fold_batch_norm_at(Rewriter& rewriter, size_t index) {
    if (rewriter.node(index).kind != "BatchNormalization") return false;
    const Affine affine = affine_of_batch_norm(rewriter, rewriter.node(index));
    if (affine.scale.empty()) return false;
    // Its channels are those of axis 1; a MatMul differs along its last axis.
    const Node* maker = rewriter.producer(affine.input);
    if (maker && is_linear(rewriter, *maker) && channel_axis(rewriter, *maker) == 1 &&
        fold_into_producer(rewriter, index, affine))
        return true;
    if (fold_into_reader(rewriter, index, affine)) return true;

    const Type type = rewriter.type(affine.input);
    if (!graph::is_float(type.data_type)) return false;
    const WeightLayout each{.channels = type.shape[1]};
    if (!holds(type.data_type, each, affine.scale, affine.shift) ||
        (affine.cancels && size_bytes(type.data_type) < 4))
        return false;
    const std::string name = rewriter.node(index).name;
    Type per_channel{type.data_type, std::vector<int64_t>(type.shape.size() - 1, 1)};
    per_channel.shape[0] = type.shape[1];
    const ValueId scale = rewriter.add_constant(name + ".scale", per_channel, affine.scale);
    const ValueId shift = rewriter.add_constant(name + ".shift", per_channel, affine.shift);
    const ValueId scaled =
        rewriter.graph().add_value(rewriter.graph().unique_name(name + ".scaled"), type);
    rewriter.graph().value(scaled).data_dependent = rewriter.value(affine.input).data_dependent;
    Node mul = rewriter.node(index);
    mul.kind = "Mul";
    mul.name = rewriter.graph().unique_name(name + ".mul");
    mul.inputs = {affine.input, scale};
    mul.outputs = {scaled};
    mul.attributes.clear();
    Node& add = rewriter.node(index);
    add.kind = "Add";
    add.inputs = {scaled, shift};
    add.attributes.clear();
    rewriter.insert(index, std::move(mul));
    return true;
}

// ---- scale and bias
// ------------------------------------------------------------------------------------------------

// Mul, Div, Add or Sub of a tensor and a constant that varies along `axis` of the tensor only.
Affine affine_of_arithmetic(const Rewriter& rewriter, const Node& node, ValueId input,
                            size_t axis) {
    Affine affine;
    if (node.inputs.size() != 2) return affine;
    const size_t at = node.inputs[0] == input ? 0 : 1;
    const auto& shape = rewriter.type(input).shape;
    if (shape != rewriter.type(node.outputs[0]).shape || axis >= shape.size()) return affine;
    auto numbers = per_channel(rewriter, node.inputs[1 - at], shape, axis);
    if (numbers.empty()) return affine;
    const std::vector<double> zeros(numbers.size(), 0), ones(numbers.size(), 1);
    if (node.kind == "Add") {
        affine = {ones, std::move(numbers), input};
    } else if (node.kind == "Mul") {
        affine = {std::move(numbers), zeros, input};
    } else if (node.kind == "Sub" && at == 0) {
        for (double& v : numbers) v = -v;
        affine = {ones, std::move(numbers), input};
    } else if (node.kind == "Sub") {
        affine = {std::vector<double>(ones.size(), -1), std::move(numbers), input};
    } else if (node.kind == "Div" && at == 0 && std::ranges::find(numbers, 0.0) == numbers.end()) {
        for (double& v : numbers) v = 1 / v;
        affine = {std::move(numbers), zeros, input};
    }
    const bool finite =
        std::ranges::all_of(affine.scale, [](double v) { return std::isfinite(v); }) &&
        std::ranges::all_of(affine.shift, [](double v) { return std::isfinite(v); });
    return finite ? affine : Affine();
}

}  // namespace

bool fold_scale_bias_at(Rewriter& rewriter, size_t index) {
    const Node& node = rewriter.node(index);
    constexpr std::string_view kinds[] = {"Add", "Div", "Mul", "Sub"};
    if (std::ranges::find(kinds, node.kind) == std::end(kinds)) return false;
    if (!graph::is_float(rewriter.type(node.outputs[0]).data_type)) return false;
    for (const ValueId input : node.inputs) {
        const Node* maker = rewriter.producer(input);
        if (!maker || !is_linear(rewriter, *maker)) continue;
        const Affine affine =
            affine_of_arithmetic(rewriter, node, input, channel_axis(rewriter, *maker));
        if (!affine.scale.empty() && fold_into_producer(rewriter, index, affine)) return true;
    }
    if (rewriter.type(node.outputs[0]).shape.size() < 3) return false;
    for (const ValueId input : node.inputs) {
        if (rewriter.is_constant(input)) continue;
        const Affine affine = affine_of_arithmetic(rewriter, node, input, 1);
        if (!affine.scale.empty() && fold_into_reader(rewriter, index, affine)) return true;
    }
    return false;
}

Result<PassStats> fold_batch_norm(graph::Graph& graph) {
    return rewrite_nodes(graph, fold_batch_norm_at);
}
Result<PassStats> fold_scale_bias(graph::Graph& graph) {
    return rewrite_nodes(graph, fold_scale_bias_at);
}

}  // namespace vartml::compiler
