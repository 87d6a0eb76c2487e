// SPDX-License-Identifier: Apache-2.0
#include "lib/compile/patches.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace vartml::compiler {

std::optional<int64_t> channel_axis(const graph::Graph& graph, const graph::Node& node) {
    const auto is_constant = [&](graph::ValueId id) {
        return id != graph::none && graph.value(id).constant.has_value();
    };
    if (node.inputs.size() < 2 || !is_constant(node.inputs[1]) || is_constant(node.inputs[0]))
        return std::nullopt;
    const size_t rank = graph.value(node.inputs[1]).type.shape.size();
    if (node.kind == "Conv") return 0;
    if (node.kind == "MatMul" && rank == 2) return 1;
    const bool plain = node.get("alpha", 1.0F) == 1 && node.get("beta", 1.0F) == 1 &&
                       node.get("transA", int64_t{0}) == 0;
    if (node.kind == "Gemm" && plain) return node.get("transB", int64_t{0}) != 0 ? 0 : 1;
    return std::nullopt;
}

std::optional<Patches> Patches::create(const graph::Graph& graph, const graph::Node& node) {
    const auto axis = channel_axis(graph, node);
    if (!axis) return std::nullopt;
    const auto& weights = graph.value(node.inputs[1]).type.shape;
    const auto& input = graph.value(node.inputs[0]).type.shape;
    const auto& output = graph.value(node.outputs[0]).type.shape;
    Patches patches;
    if (node.kind != "Conv") {
        patches.transposed_ = *axis == 1;
        patches.outputs_ = static_cast<size_t>(weights[static_cast<size_t>(*axis)]);
        patches.size_ = static_cast<size_t>(weights[static_cast<size_t>(1 - *axis)]);
        return patches;
    }
    const size_t dims = weights.size() - 2;
    if ((dims != 1 && dims != 2) || input.size() != dims + 2 || output.size() != dims + 2)
        return std::nullopt;
    const auto pads = node.get("pads", std::vector<int64_t>(2 * dims, 0));
    const auto strides = node.get("strides", std::vector<int64_t>(dims, 1));
    const auto steps = node.get("dilations", std::vector<int64_t>(dims, 1));
    if (pads.size() != 2 * dims || strides.size() != dims || steps.size() != dims)
        return std::nullopt;
    patches.is_image_ = true;
    patches.channels_ = input[1];
    patches.width_ = input[dims + 1];
    patches.taps_x_ = weights[dims + 1];
    patches.stride_x_ = strides[dims - 1];
    patches.step_x_ = steps[dims - 1];
    patches.left_ = pads[dims - 1];
    patches.columns_ = output[dims + 1];
    if (dims == 2) {
        patches.height_ = input[2];
        patches.taps_y_ = weights[2];
        patches.stride_y_ = strides[0];
        patches.step_y_ = steps[0];
        patches.top_ = pads[0];
        patches.rows_ = output[2];
    }
    patches.groups_ = static_cast<size_t>(node.get("group", int64_t{1}));
    patches.outputs_ = static_cast<size_t>(weights[0]);
    patches.size_ = static_cast<size_t>(weights[1] * patches.taps_y_ * patches.taps_x_);
    return patches;
}

std::vector<float> Patches::rows_of(std::span<const float> weights) const {
    std::vector<float> rows(weights.begin(), weights.end());
    if (transposed_)
        for (size_t o = 0; o < outputs_; ++o)
            for (size_t i = 0; i < size_; ++i) rows[o * size_ + i] = weights[i * outputs_ + o];
    return rows;
}

template <typename T>
std::vector<T> Patches::weights_of(std::span<const T> rows) const {
    std::vector<T> weights(rows.begin(), rows.end());
    if (transposed_ && !rows.empty())
        for (size_t o = 0; o < outputs_; ++o)
            for (size_t i = 0; i < size_; ++i) weights[i * outputs_ + o] = rows[o * size_ + i];
    return weights;
}
template std::vector<float> Patches::weights_of(std::span<const float>) const;
template std::vector<int8_t> Patches::weights_of(std::span<const int8_t>) const;

std::vector<float> Patches::read(std::span<const float> input, size_t most, size_t sample) const {
    const auto plane = static_cast<size_t>(height_ * width_);
    const size_t image = is_image_ ? static_cast<size_t>(channels_) * plane : size_;
    const size_t positions = is_image_ ? static_cast<size_t>(rows_ * columns_) : 1;
    if (image == 0 || positions == 0) return {};
    const size_t all = input.size() / image * positions, count = std::min(all, most);
    const size_t length = groups_ * size_;
    std::vector<float> patches(count * length, 0.0F);
    // Golden section: no two samples are read at the same places.
    const double first = std::fmod(static_cast<double>(sample) * 0.6180339887, 1.0);
    for (size_t n = 0; n < count; ++n) {
        const double part = (static_cast<double>(n) + first) / static_cast<double>(count);
        const size_t at = std::min(static_cast<size_t>(part * static_cast<double>(all)), all - 1);
        const float* source = input.data() + at / positions * image;
        float* patch = patches.data() + n * length;
        if (!is_image_) {
            std::copy_n(source, size_, patch);
            continue;
        }
        const auto position = static_cast<int64_t>(at % positions);
        const int64_t top = position / columns_ * stride_y_ - top_;
        const int64_t left = position % columns_ * stride_x_ - left_;
        for (int64_t c = 0; c < channels_; ++c)
            for (int64_t ty = 0; ty < taps_y_; ++ty)
                for (int64_t tx = 0; tx < taps_x_; ++tx, ++patch) {
                    const int64_t y = top + ty * step_y_, x = left + tx * step_x_;
                    if (y >= 0 && y < height_ && x >= 0 && x < width_)
                        *patch = source[(c * height_ + y) * width_ + x];
                }
    }
    return patches;
}

}  // namespace vartml::compiler
