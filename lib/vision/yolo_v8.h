// SPDX-License-Identifier: Apache-2.0
// What the heads of the YOLO v8 line share: [1,4+C+extra,N] of centre and size in model pixels,
// class scores, and columns that one task adds.
#pragma once
#include <optional>

#include "lib/vision/dense_detector.h"

namespace vartml::vision {

struct YoloV8 {
    static constexpr DenseForm form{.attributes_first = true, .box_attributes = 4, .per_cell = 1};
    static Candidate box(const Matrix& m, const DenseHead& head, uint32_t position, float score,
                         int32_t class_id) {
        return final_box(m, head, position, score, class_id);
    }
};

// Columns behind the box of the only output, where it has the published form; else 0.
unsigned yolo_v8_columns(const HeadRequest& request);

// How keypoints lie behind the classes: `count` of `values` (x, y, perhaps a score).
struct PoseColumns {
    unsigned count = 0, values = 0;
    unsigned all() const { return count * values; }
};
// Of `columns` behind the box. As many classes as labels or sidecar promise, else one; three values
// per point where that goes, unless the sidecar's skeleton names points that there would not be.
// Nothing where no number of points fits.
std::optional<PoseColumns> pose_columns(const ModelInfo& info, unsigned columns);

// The task that the only output is for. A turned box has one column more than its classes,
// keypoints have the published 17 points or a skeleton in the sidecar. Without a count of classes,
// the published shapes (15 classes of turned boxes, one class with 17 points) fit several.
bool is_yolo_v8_obb(const HeadRequest& request);
bool is_yolo_v8_pose(const HeadRequest& request);

}  // namespace vartml::vision
