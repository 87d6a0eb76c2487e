// SPDX-License-Identifier: Apache-2.0
// The inner loop of greedy non-maximum suppression.
#pragma once
#include <cstddef>
#include <cstdint>

namespace vartml::kernels {

// Boxes as columns; `area` is (x1 - x0) * (y1 - y0) in float.
struct BoxColumns {
    const float *x0, *y0, *x1, *y1, *area;
    const int32_t* group;  // boxes of different groups never overlap
    size_t count;
};

struct GroupedBox {
    float x0, y0, x1, y1, area;
    int32_t group;
};

// Whether a box of `boxes` of the same group overlaps `box` with IoU > threshold, where IoU is
//   inter = max(0, min(x1) - max(x0)) * max(0, min(y1) - max(y0)),  inter / (area + area' - inter)
// in float, in this order; 0 / 0 is no overlap. Every instruction set decides as overlaps_any_ref.
bool overlaps_any(const BoxColumns& boxes, const GroupedBox& box, float threshold);
bool overlaps_any_ref(const BoxColumns& boxes, const GroupedBox& box, float threshold);

}  // namespace vartml::kernels
