// SPDX-License-Identifier: Apache-2.0
// Activations on rows of floats.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/types.h"

namespace vartml::kernels {

//   none x · relu max(x, 0) · leaky x < 0 ? alpha·x : x · clip min(max(x, alpha), beta) · sigmoid 1
//   / (1 + exp(-x)) silu x·sigmoid(x) · hard_sigmoid clip(alpha·x + beta, 0, 1) · hard_swish
//   x·clip(x/6 + 1/2, 0, 1) · tanh · exp
enum class Activation : uint8_t {
    none,
    relu,
    leaky,
    clip,
    sigmoid,
    silu,
    hard_sigmoid,
    hard_swish,
    tanh,
    exp
};

// What makes codes of sums, for each channel: saturate(round(activation of (sum · scale) · factor)
// + zero).
struct ToCodes {
    const float* scales = nullptr;
    const float* factors = nullptr;
    uint8_t zero = 0;
};

// What happens to each result of a convolution before it is stored.
struct Epilogue {
    Activation activation = Activation::none;
    float alpha = 0, beta = 0;
    bool add_first = false;  // the residual is added before the activation, else after
    ToCodes codes = {};      // where results are codes; the arrays outlive the call
};

// Results of a convolution, `width` apart, of whose rows the first `count` are finished. Other
// steps are in bytes.
struct SumRows {
    const float* sums;
    size_t width;
    const std::byte* residual;
    size_t residual_step;
    std::byte* dst;
    size_t dst_step;
    size_t rows, count;
    size_t channel = 0;  // the first one
};
using FinishRows = void (*)(const Epilogue& epilogue, const SumRows& rows);

// The function that activates, adds a residual of `source` elements (if it `has_residual`) and
// stores `result` elements, on this processor. For fp32 activate_row() has the bounds; results in
// bf16 and codes are within 4e-4 of their size before they are rounded to the nearest. Codes have
// no residual.
FinishRows find_finish(Activation activation, bool has_residual, Element source, Element result);

// dst[i] = activation of src[i] with residual[i] added before or after; residual nullptr: none; dst
// may be src or residual.
// Results are within 1e-6 + 1e-7·|x| of the exact value, relative to it (hard_sigmoid, hard_swish:
// to 1 + |x|), or within 1e-35 where that is more.
void activate_row(const Epilogue& epilogue, const float* src, const float* residual, float* dst,
                  size_t count);
void activate_row_ref(const Epilogue& epilogue, const float* src, const float* residual, float* dst,
                      size_t count);

}  // namespace vartml::kernels
