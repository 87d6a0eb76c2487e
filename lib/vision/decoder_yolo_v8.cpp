// SPDX-License-Identifier: Apache-2.0
// YOLO v8, v9, v11, v12: [1,4+C,N] of centre and size in model pixels and class scores.
#include "lib/vision/dense_detector.h"

namespace vartml::vision {

namespace {

struct YoloV8 {
    static constexpr DenseForm form{.attributes_first = true, .box_attributes = 4, .per_cell = 1};
    static Candidate box(const Matrix& m, const DenseHead&, uint32_t position, float score,
                         int32_t class_id) {
        return centred_box(m, position, score, class_id);
    }
};

}  // namespace

bool fits_yolo_v8(const HeadRequest& request) {
    return fits_dense_form(request, YoloV8::form);
}

Result<std::unique_ptr<Head>> create_yolo_v8(const HeadRequest& request) {
    return DenseDetector<YoloV8>::create(request);
}

}  // namespace vartml::vision
