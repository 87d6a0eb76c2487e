// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/postprocess/overlap.h"

namespace vartml::kernels {

bool overlaps_any_ref(const BoxColumns& boxes, const GroupedBox& box, float threshold) {
    for (size_t i = 0; i < boxes.count; ++i) {
        if (boxes.group[i] != box.group) continue;
        const float width = std::min(boxes.x1[i], box.x1) - std::max(boxes.x0[i], box.x0);
        const float height = std::min(boxes.y1[i], box.y1) - std::max(boxes.y0[i], box.y0);
        const float inter = std::max(0.f, width) * std::max(0.f, height);
        if (inter / (boxes.area[i] + box.area - inter) > threshold) return true;
    }
    return false;
}

}  // namespace vartml::kernels
