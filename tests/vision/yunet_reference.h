// SPDX-License-Identifier: Apache-2.0
// YuNet of 2023 by its published formula.
#pragma once
#include "tests/vision/face_heads.h"

namespace vartml::test {

// Tensors by kind (class, objectness, box, landmarks), each by stride 8, 16, 32.
inline std::vector<RefFace> ref_yunet(const Tensors& tensors, uint32_t width, uint32_t) {
    std::vector<RefFace> faces;
    for (size_t l = 0; l < 3; ++l) {
        const int s = 8 << l, columns = static_cast<int>(width) / s;
        const RefTensor &cls = tensors[l].table, &obj = tensors[3 + l].table,
                        &box = tensors[6 + l].table, &kps = tensors[9 + l].table;
        for (size_t p = 0; p < cls.positions; ++p) {
            const int x = static_cast<int>(p) % columns, y = static_cast<int>(p) / columns;
            const double score = std::sqrt(std::clamp(double{cls.at(p, 0)}, 0., 1.) *
                                           std::clamp(double{obj.at(p, 0)}, 0., 1.));
            const double cx = (x + box.at(p, 0)) * s, cy = (y + box.at(p, 1)) * s;
            const double w = std::exp(double{box.at(p, 2)}) * s;
            const double h = std::exp(double{box.at(p, 3)}) * s;
            RefFace face{{cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2, score, 0}, {}};
            for (size_t k = 0; k < 5; ++k)
                face.points.push_back({(x + kps.at(p, 2 * k)) * s, (y + kps.at(p, 2 * k + 1)) * s});
            faces.push_back(face);
        }
    }
    return faces;
}

}  // namespace vartml::test
