// SPDX-License-Identifier: Apache-2.0
#include "lib/device/softnpu/activation_step.h"

#include <algorithm>
#include <limits>

#include "lib/device/softnpu/copy_step.h"

namespace vartml::softnpu {
namespace {

using kernels::Activation;
using kernels::Epilogue;

struct Row {
    std::string_view kind;
    Activation activation;
};
constexpr Row activations[] = {
    {"Relu", Activation::relu},
    {"LeakyRelu", Activation::leaky},
    {"Clip", Activation::clip},
    {"Sigmoid", Activation::sigmoid},
    {"SiLU", Activation::silu},
    {"HardSigmoid", Activation::hard_sigmoid},
    {"HardSwish", Activation::hard_swish},
    {"Tanh", Activation::tanh},
    {"Exp", Activation::exp},
};

class ActivationStep final : public Step {
public:
    ActivationStep(const Epilogue& epilogue, View src, View dst)
        : epilogue_(epilogue), src_(std::move(src)), dst_(std::move(dst)) {}

    Extent extent() const override { return {src_.elements(), src_.elements() / 2}; }

    void run(const Bases& bases, size_t item) noexcept override {
        const auto [first, last] = part(item);
        kernels::activate_row(epilogue_,
                              reinterpret_cast<const float*>(address(bases, src_)) + first, nullptr,
                              reinterpret_cast<float*>(address(bases, dst_)) + first,
                              static_cast<size_t>(last - first));
    }

    std::string describe() const override {
        const auto row = std::ranges::find(activations, epilogue_.activation, &Row::activation);
        return std::string(row == std::end(activations) ? "none" : row->kind) + " " + text(src_) +
               " -> " + text(dst_);
    }

private:
    Epilogue epilogue_;
    View src_, dst_;
};

}  // namespace

std::optional<Epilogue> find_activation(const graph::Node& node, std::string_view kind,
                                        const std::string& prefix) {
    const auto row = std::ranges::find(activations, kind, &Row::kind);
    if (row == std::end(activations)) return std::nullopt;
    constexpr float most = std::numeric_limits<float>::max();
    Epilogue e;
    e.activation = row->activation;
    if (e.activation == Activation::leaky) e.alpha = node.get(prefix + "alpha", 0.01F);
    if (e.activation == Activation::clip) {
        e.alpha = node.get(prefix + "min", -most);
        e.beta = node.get(prefix + "max", most);
    }
    if (e.activation == Activation::hard_sigmoid) {
        e.alpha = node.get(prefix + "alpha", 0.2F);
        e.beta = node.get(prefix + "beta", 0.5F);
    }
    return e;
}

void lower_activation(Lowering& lowering, const Epilogue& epilogue, const View& src,
                      const View& dst, std::string_view name) {
    lowering.emit(std::make_unique<ActivationStep>(epilogue, src, dst), name, {&src, &dst});
}

}  // namespace vartml::softnpu
