// SPDX-License-Identifier: Apache-2.0
// YOLO v3, v4, v5, v7 without the last layer: a map per stride of [1,A,h,w,5+C] or [1,A(5+C),h,w]
// (also [1,h,w,A(5+C)]), of numbers before their sigmoid.
#pragma once
#include "lib/vision/head.h"

namespace vartml::vision {

// Whether an output can be such a map, by its rank.
bool has_raw_maps(const HeadRequest& request);
bool fits_yolo_v5_raw(const HeadRequest& request);
// Errors: dec-role, dec-positions (strides, anchors), dec-classes.
Result<std::unique_ptr<Head>> create_yolo_v5_raw(const HeadRequest& request);

}  // namespace vartml::vision
