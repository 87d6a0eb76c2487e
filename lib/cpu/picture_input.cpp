// SPDX-License-Identifier: Apache-2.0
#include "lib/cpu/picture_input.h"

#include "lib/cpu/kernel.h"

namespace vartml::cpu {

namespace {

Result<void> run_picture_input(const Call& call) {
    const std::vector<float> table = picture_table(call.node);
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const int64_t pixels = x.shape[1] * x.shape[2], bytes = x.shape[3];
    const auto channels = static_cast<int64_t>(table.size() / 256);
    const bool channels_last = call.node.get("layout", "NCHW") == "NHWC";
    const auto from = x.span<const uint8_t>();
    const auto to = y.span<float>();
    for (int64_t p = 0; p < pixels; ++p) {
        for (int64_t c = 0; c < channels; ++c) {
            const int64_t at = channels_last ? p * channels + c : c * pixels + p;
            to[static_cast<size_t>(at)] =
                table[static_cast<size_t>(c * 256 + from[static_cast<size_t>(p * bytes + c)])];
        }
    }
    return {};
}

constexpr KernelRow rows[] = {{"PictureInput", run_picture_input}};

}  // namespace

std::vector<float> picture_table(const graph::Node& node) {
    const auto mean = node.get("mean", std::vector<float>());
    const auto scale = node.get("scale", std::vector<float>());
    std::vector<float> table;
    for (size_t c = 0; c < mean.size(); ++c)
        for (int byte = 0; byte < 256; ++byte)
            table.push_back((static_cast<float>(byte) - mean[c]) * scale[c]);
    return table;
}

std::span<const KernelRow> picture_input_kernels() {
    return rows;
}

}  // namespace vartml::cpu
