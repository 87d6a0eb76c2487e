// SPDX-License-Identifier: Apache-2.0
// The way of keypoints and masks from the model's input to the frame.
#pragma once
#include "lib/vision/head.h"

namespace vartml::vision {

// Appends the details of a box to `decoded` and says in `detection` where they are. A mask keeps
// its pixels; only the rectangle that it covers is mapped, and it may reach beyond the frame.
void map_details(const BoxDetails& details, const Affine& to_frame, float keypoint_threshold,
                 Detection& detection, Decoded& decoded);

// The same for what belongs to the whole picture. A class map loses the rows and columns that lie
// outside of the frame (borders of a letterbox).
void map_picture(const PictureDetails& picture, const Affine& to_frame, uint32_t frame_width,
                 uint32_t frame_height, float keypoint_threshold, Decoded& decoded);

}  // namespace vartml::vision
