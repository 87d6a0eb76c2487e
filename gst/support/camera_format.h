// SPDX-License-Identifier: Apache-2.0
// What the V4L2 camera before an element really gives: a v4l2src may call a tensor by the name of a
// video format.
#pragma once
#include <gst/gst.h>

#include <optional>

#include "gst/support/picture_info.h"

namespace vartml::gst {

// The tensor that frames under these caps are, by the format that their camera is set to. Nothing
// where it gives pictures, or where something between the camera and the element may have made
// other frames of its. Any thread, with no lock held.
std::optional<TensorFrame> camera_tensor(GstElement* element, const FrameFormat& format);

}  // namespace vartml::gst
