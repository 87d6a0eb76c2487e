// SPDX-License-Identifier: Apache-2.0
// Largest value of each window of a picture with channels last.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/conv/conv.h"

namespace vartml::kernels {

struct PoolShape {
    uint32_t in_height = 0, in_width = 0, out_height = 0, out_width = 0, channels = 0;
    uint32_t kernel_height = 1, kernel_width = 1, stride_height = 1, stride_width = 1;
    int32_t pad_top = 0, pad_left = 0;
    Element element = Element::f32;
};

// Bytes of scratch memory, aligned to 4, that a call needs.
size_t max_pool_scratch_size(const PoolShape& shape);

// Output rows first…last-1. What lies beyond the picture counts for nothing; every window covers at
// least one pixel. `src` and `dst` do not overlap.
void max_pool_rows(const PoolShape& shape, const AnySrcPicture& src, const AnyDstPicture& dst,
                   std::byte* scratch, size_t first, size_t last);
// The same of fp32 in plain loops.
void max_pool_ref(const PoolShape& shape, const SrcPicture& src, const DstPicture& dst);

}  // namespace vartml::kernels
