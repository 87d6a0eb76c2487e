// SPDX-License-Identifier: Apache-2.0
// 1x1 convolution of bf16 pictures, channels last, on processors that multiply pairs of bf16: the
// products are summed in fp32, bias, activation and residual follow in registers, and results are
// rounded once.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/ops/activation.h"
#include "kernels/types.h"

namespace vartml::kernels {

struct PointShape {
    uint32_t in_channels = 0, out_channels = 0;
};

// Whether this processor has the instructions and the channels come in pairs.
bool has_bf16_point(const PointShape& shape);

// Bytes of the packed weights and bias.
size_t packed_bf16_point_size(const PointShape& shape);

// Packs `weights` [out][in], rounded to bf16 to the nearest, and `bias` [out] (nullptr: zeros) for
// this processor. `packed` is aligned to 4 bytes.
void pack_bf16_point(const PointShape& shape, const float* weights, const float* bias,
                     std::byte* packed);

// A run of pixels, `step` elements from one to the next.
struct Bf16Line {
    const bf16* data;
    size_t step;
};

// dst[p][o] of `pixels` pixels; `residual` (data nullptr: none) has out_channels too. dst overlaps
// neither src nor residual. Activations are within 4e-4 of their size before they are rounded to a
// bf16 result, and those of activate_row() for one in fp32.
void bf16_point(const PointShape& shape, const Bf16Line& src, const std::byte* packed,
                const Epilogue& epilogue, const Bf16Line& residual, bf16* dst, size_t dst_step,
                size_t pixels);
void bf16_point(const PointShape& shape, const Bf16Line& src, const std::byte* packed,
                const Epilogue& epilogue, const Bf16Line& residual, float* dst, size_t dst_step,
                size_t pixels);

}  // namespace vartml::kernels
