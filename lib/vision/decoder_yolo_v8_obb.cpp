// SPDX-License-Identifier: Apache-2.0
// YOLO v8, v11 for turned boxes: [1,4+C+1,N]; the last column is the angle in radians, clockwise on
// the screen.
#include "lib/vision/yolo_v8.h"

namespace vartml::vision {

namespace {

constexpr unsigned published_classes = 15;  // DOTA

struct YoloV8Obb {
    static constexpr DenseForm form{
        .attributes_first = true, .box_attributes = 4, .per_cell = 1, .extra = 1};
    static Candidate box(const Matrix& m, const DenseHead&, uint32_t position, float score,
                         int32_t class_id) {
        Candidate box = centred_box(m, position, score, class_id);
        box.angle = m.value(position, m.columns - 1);
        if (!std::isfinite(box.angle)) box.score = box.angle;  // dropped and counted
        return box;
    }
};

}  // namespace

bool is_yolo_v8_obb(const HeadRequest& request) {
    const unsigned columns = yolo_v8_columns(request);
    return columns > 1 && columns - 1 == tensor_classes(request.info).value_or(published_classes);
}

bool fits_yolo_v8_obb(const HeadRequest& request) {
    return is_yolo_v8_obb(request);
}

Result<std::unique_ptr<Head>> create_yolo_v8_obb(const HeadRequest& request) {
    return DenseDetector<YoloV8Obb>::create(request);
}

}  // namespace vartml::vision
