// SPDX-License-Identifier: Apache-2.0
// The specification of activation.h in plain loops.
#include <algorithm>
#include <cmath>

#include "kernels/ops/activation.h"

namespace vartml::kernels {
namespace {

double apply(const Epilogue& e, double x) {
    switch (e.activation) {
        case Activation::none:
            return x;
        case Activation::relu:
            return std::max(x, 0.0);
        case Activation::leaky:
            return x < 0 ? e.alpha * x : x;
        case Activation::clip:
            return std::min(std::max<double>(x, e.alpha), static_cast<double>(e.beta));
        case Activation::sigmoid:
            return 1 / (1 + std::exp(-x));
        case Activation::silu:
            return x / (1 + std::exp(-x));
        case Activation::hard_sigmoid:
            return std::clamp(e.alpha * x + e.beta, 0.0, 1.0);
        case Activation::hard_swish:
            return x * std::clamp(x / 6 + 0.5, 0.0, 1.0);
        case Activation::tanh:
            return std::tanh(x);
        case Activation::exp:
            return std::exp(x);
    }
    return x;
}

}  // namespace

void activate_row_ref(const Epilogue& epilogue, const float* src, const float* residual, float* dst,
                      size_t count) {
    for (size_t i = 0; i < count; ++i) {
        const double add = residual ? residual[i] : 0;
        const double x = src[i];
        dst[i] = static_cast<float>(epilogue.add_first ? apply(epilogue, x + add)
                                                       : apply(epilogue, x) + add);
    }
}

}  // namespace vartml::kernels
