// SPDX-License-Identifier: Apache-2.0
// What the V4L2 camera before an element really gives: a v4l2src may call a tensor by the name of a
// video format, and a pre-processor behind the camera may be set for another model.
#pragma once
#include <gst/gst.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "gst/support/picture_info.h"

namespace vartml::gst {

// The tensor that frames under these caps are, by the format that their camera is set to. Nothing
// where it gives pictures, or where something between the camera and the element may have made
// other frames of its. Any thread, with no lock held.
std::optional<TensorFrame> camera_tensor(GstElement* element, const FrameFormat& format);

// A code of one colour is (pixel - mean) * gain, rounded.
struct ColourCodes {
    double mean = 0, gain = 1;
};

// What the camera's pre-processor makes int8 of red, green and blue, read from the controls of the
// video device or of a sub-device before it. Nothing where neither has all of them. As above.
std::optional<std::array<ColourCodes, 3>> camera_codes(GstElement* element);

// The files of the sub-devices whose enabled links lead to this video device, the nearest first.
std::vector<std::string> subdevices_before(int video_device);

}  // namespace vartml::gst
