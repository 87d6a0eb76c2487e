// SPDX-License-Identifier: Apache-2.0
// The specification of conv.h in plain loops.
#include "kernels/conv/conv.h"

namespace vartml::kernels {
namespace {

double sum_at(const ConvShape& s, const SrcPicture& src, const float* weights, int64_t y, int64_t x,
              uint32_t o) {
    double sum = 0;
    const uint32_t channels = s.depthwise ? 1 : s.in_channels;
    for (uint32_t ky = 0; ky < s.kernel_height; ++ky) {
        for (uint32_t kx = 0; kx < s.kernel_width; ++kx) {
            const int64_t iy = y * s.stride_height + ky * s.dilation_height - s.pad_top;
            const int64_t ix = x * s.stride_width + kx * s.dilation_width - s.pad_left;
            if (iy < 0 || iy >= s.in_height || ix < 0 || ix >= s.in_width) continue;
            const float* pixel =
                src.data + static_cast<size_t>(iy) * src.row + static_cast<size_t>(ix) * src.pixel;
            for (uint32_t c = 0; c < channels; ++c) {
                const size_t w = ((static_cast<size_t>(o) * channels + c) * s.kernel_height + ky) *
                                     s.kernel_width +
                                 kx;
                sum += static_cast<double>(pixel[s.depthwise ? o : c]) * weights[w];
            }
        }
    }
    return sum;
}

}  // namespace

void conv_ref(const ConvShape& s, const SrcPicture& src, const float* weights, const float* bias,
              const Epilogue& epilogue, const SrcPicture& residual, const DstPicture& dst) {
    for (uint32_t y = 0; y < s.out_height; ++y) {
        for (uint32_t x = 0; x < s.out_width; ++x) {
            for (uint32_t o = 0; o < s.out_channels; ++o) {
                const auto sum = static_cast<float>(sum_at(s, src, weights, y, x, o) +
                                                    (bias ? static_cast<double>(bias[o]) : 0.0));
                const float* add = residual.data
                                       ? residual.data + y * residual.row + x * residual.pixel + o
                                       : nullptr;
                activate_row_ref(epilogue, &sum, add, dst.data + y * dst.row + x * dst.pixel + o,
                                 1);
            }
        }
    }
}

}  // namespace vartml::kernels
