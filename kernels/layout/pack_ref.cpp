// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "kernels/layout/pack.h"

namespace vartml::kernels {

void pack_planes_ref(const Cast& cast, const void* src, size_t plane_stride_bytes, size_t channels,
                     void* dst, const BlockRows& rows) {
    const CastBytes bytes = cast_bytes(cast.kind);
    for (size_t r = 0; r < rows.rows; ++r) {
        const auto* s = static_cast<const std::byte*>(src) + r * rows.pixels * bytes.src;
        auto* d = static_cast<std::byte*>(dst) + r * rows.row_stride_bytes;
        std::memset(d, 0, rows.pixels * rows.block * bytes.dst);
        for (size_t p = 0; p < rows.pixels; ++p)
            for (size_t c = 0; c < channels; ++c)
                cast_rows_ref(cast, s + c * plane_stride_bytes + p * bytes.src, 0,
                              d + (p * rows.block + c) * bytes.dst, 0, 1, 1, 0);
    }
}

void unpack_planes_ref(const Cast& cast, const void* src, const BlockRows& rows, size_t channels,
                       void* dst, size_t plane_stride_bytes) {
    const CastBytes bytes = cast_bytes(cast.kind);
    for (size_t r = 0; r < rows.rows; ++r) {
        const auto* s = static_cast<const std::byte*>(src) + r * rows.row_stride_bytes;
        auto* d = static_cast<std::byte*>(dst) + r * rows.pixels * bytes.dst;
        for (size_t p = 0; p < rows.pixels; ++p)
            for (size_t c = 0; c < channels; ++c)
                cast_rows_ref(cast, s + (p * rows.block + c) * bytes.src, 0,
                              d + c * plane_stride_bytes + p * bytes.dst, 0, 1, 1, 0);
    }
}

}  // namespace vartml::kernels
