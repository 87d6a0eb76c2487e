// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "kernels/layout/interleave.h"

namespace vartml::kernels {

void planes_to_pixels_ref(size_t word_bytes, const void* src, size_t plane_stride_bytes,
                          size_t channels, size_t pixels, void* dst, size_t block) {
    const auto* s = static_cast<const std::byte*>(src);
    auto* d = static_cast<std::byte*>(dst);
    std::memset(d, 0, pixels * block * word_bytes);
    for (size_t p = 0; p < pixels; ++p)
        for (size_t c = 0; c < channels; ++c)
            std::memcpy(d + (p * block + c) * word_bytes,
                        s + c * plane_stride_bytes + p * word_bytes, word_bytes);
}

void pixels_to_planes_ref(size_t word_bytes, const void* src, size_t block, size_t channels,
                          size_t pixels, void* dst, size_t plane_stride_bytes) {
    const auto* s = static_cast<const std::byte*>(src);
    auto* d = static_cast<std::byte*>(dst);
    for (size_t p = 0; p < pixels; ++p)
        for (size_t c = 0; c < channels; ++c)
            std::memcpy(d + c * plane_stride_bytes + p * word_bytes,
                        s + (p * block + c) * word_bytes, word_bytes);
}

void pixels_to_pixels_ref(size_t word_bytes, const void* src, size_t src_step, void* dst,
                          size_t dst_step, size_t channels, size_t fill, size_t pixels) {
    const auto* s = static_cast<const std::byte*>(src);
    auto* d = static_cast<std::byte*>(dst);
    for (size_t p = 0; p < pixels; ++p) {
        std::memcpy(d + p * dst_step * word_bytes, s + p * src_step * word_bytes,
                    channels * word_bytes);
        std::memset(d + (p * dst_step + channels) * word_bytes, 0, (fill - channels) * word_bytes);
    }
}

}  // namespace vartml::kernels
