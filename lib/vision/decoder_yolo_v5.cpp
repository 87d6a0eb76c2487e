// SPDX-License-Identifier: Apache-2.0
// YOLO v3, v4, v5, v7 with the boxes decoded in the model: [1,N,5+C] of centre and size in model
// pixels, objectness, classes; score objectness * class. Also raw maps (yolo_v5_raw.h).
#include "lib/vision/dense_detector.h"
#include "lib/vision/yolo_v5_raw.h"

namespace vartml::vision {

namespace {

struct YoloV5 {
    static constexpr DenseForm form{.attributes_first = false, .box_attributes = 5, .per_cell = 3};
    static Candidate box(const Matrix& m, const DenseHead& head, uint32_t position, float score,
                         int32_t class_id) {
        return final_box(m, head, position, score, class_id);
    }
};

}  // namespace

bool fits_yolo_v5(const HeadRequest& request) {
    return fits_dense_form(request, YoloV5::form) || fits_yolo_v5_raw(request);
}

Result<std::unique_ptr<Head>> create_yolo_v5(const HeadRequest& request) {
    if (has_raw_maps(request)) return create_yolo_v5_raw(request);
    return DenseDetector<YoloV5>::create(request);
}

}  // namespace vartml::vision
