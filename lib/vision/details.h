// SPDX-License-Identifier: Apache-2.0
// The way of keypoints and masks from the model's input to the frame.
#pragma once
#include "lib/vision/head.h"

namespace vartml::vision {

struct FrameSize {
    uint32_t width, height;
};

// Appends the details of a box to `decoded` and says in `detection` where they are. A mask keeps
// its cells, the rectangle that it covers is mapped; rows and columns whose centres lie outside of
// the frame (such as in the borders of a letterbox) are left out.
void map_details(const BoxDetails& details, const Affine& to_frame, FrameSize frame,
                 float keypoint_threshold, Detection& detection, Decoded& decoded);

// The same for what belongs to the whole picture.
void map_picture(const PictureDetails& picture, const Affine& to_frame, FrameSize frame,
                 float keypoint_threshold, Decoded& decoded);

}  // namespace vartml::vision
