// SPDX-License-Identifier: Apache-2.0
#include "lib/compiler/passes/affine.h"

#include <algorithm>

#include "lib/graph/numbers.h"

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
    if (node.base() == "MatMul" || (node.base() == "Gemm" && !node.get("transB", int64_t{0}))) {
        layout.outer = shape[0];
        layout.channels = shape[1];
    } else if (node.base() == "ConvTranspose") {
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
    const double factor = node.base() == "Gemm" ? node.get("beta", 1.0F) : 1;
    const auto numbers = graph::read_numbers<double>(value);
    for (size_t i = 0; i < count; ++i) bias[i] = factor * numbers[numbers.size() == 1 ? 0 : i];
    return bias;
}

void set_weight_and_bias(Rewriter& rewriter, size_t index, std::span<const double> weight,
                         std::span<const double> bias) {
    const ValueId old_weight = rewriter.node(index).inputs[1];
    const Type type = rewriter.type(old_weight);
    const std::string stem = rewriter.value(old_weight).name;
    const ValueId new_weight = rewriter.add_constant(stem, type, weight);
    const ValueId new_bias =
        rewriter.add_constant(rewriter.node(index).name + ".bias",
                              {type.data_type, {static_cast<int64_t>(bias.size())}}, bias);
    Node& node = rewriter.node(index);
    node.inputs.resize(std::max<size_t>(node.inputs.size(), 3), none);
    node.inputs[1] = new_weight;
    node.inputs[2] = new_bias;
    if (node.base() == "Gemm") node.attributes["beta"] = 1.0F;
    rewriter.refresh();
}

}  // namespace

bool is_linear(const Rewriter& rewriter, const Node& node) {
    constexpr std::string_view kinds[] = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
    if (std::ranges::find(kinds, node.base()) == std::end(kinds)) return false;
    if (!rewriter.is_constant(node.inputs[1])) return false;
    const Type& weight = rewriter.type(node.inputs[1]);
    if (!graph::is_float(weight.data_type) || weight.elements() == 0) return false;
    if (node.base() == "MatMul" &&
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
    return node.kind.starts_with("Conv") ? 1 : rank - 1;
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
    set_weight_and_bias(rewriter, index, weight, bias);
    return true;
}

bool absorb_input_affine(Rewriter& rewriter, size_t index, std::span<const double> scale,
                         std::span<const double> shift) {
    const Node& node = rewriter.node(index);
    if (node.base() != "Conv" || !is_linear(rewriter, node)) return false;
    const bool shifts = std::ranges::any_of(shift, [](double v) { return v != 0; });
    const bool pads = std::ranges::any_of(node.get("pads", std::vector<int64_t>()),
                                          [](int64_t v) { return v != 0; });
    // The padding holds zeros, which the shift would have to reach.
    if (shifts && pads) return false;
    const Type& type = rewriter.type(node.inputs[1]);
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
    set_weight_and_bias(rewriter, index, weight, bias);
    return true;
}

}  // namespace vartml::compiler
