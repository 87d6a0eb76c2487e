// SPDX-License-Identifier: Apache-2.0
// YOLO v8, v9, v11, v12: [1,4+C,N] of centre and size in model pixels and class scores.
#include "lib/vision/yolo_v8.h"

namespace vartml::vision {

unsigned yolo_v8_columns(const HeadRequest& request) {
    if (!fits_dense_form(request, YoloV8::form)) return 0;
    const auto head = locate_dense_head(
        {request.info, request.outputs, request.width, request.height, nullptr}, YoloV8::form);
    return head ? static_cast<unsigned>(head->attributes) - YoloV8::form.box_attributes : 0;
}

bool fits_yolo_v8(const HeadRequest& request) {
    const unsigned columns = yolo_v8_columns(request);
    // Who knows the classes knows whether there is more than classes.
    const auto classes = tensor_classes(request.info);
    const bool other_task =
        classes && *classes != columns && (is_yolo_v8_obb(request) || is_yolo_v8_pose(request));
    return columns && !other_task;
}

Result<std::unique_ptr<Head>> create_yolo_v8(const HeadRequest& request) {
    return DenseDetector<YoloV8>::create(request);
}

}  // namespace vartml::vision
