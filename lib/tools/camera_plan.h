// SPDX-License-Identifier: Apache-2.0
// What a camera's pre-processor on a board is set to, so that its frames are a model's input: the
// sizes of its pads and its V4L2 controls.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <vartml/postprocess.h>
#include <vartml/result.h>
#include <vartml/tensor.h>

namespace vartml::tools {

struct CameraPad {
    const char* code = "";  // of the media bus, as media-ctl calls it
    uint32_t width = 0, height = 0;
};

struct CameraControl {
    std::string name;
    int32_t value = 0;
    bool operator==(const CameraControl&) const = default;
};

struct CameraPlan {
    CameraPad pads[2];  // by number: the camera's picture, the tensor
    std::vector<CameraControl> controls;
    std::vector<std::string> warnings;  // what the pre-processor does otherwise than the model says
};

// Codes of `input` from frames of the size given: (pixel - mean) * scale / step + zero point, as
// vartmlinfer computes them. `model` is for messages. Errors: unsupported naming model, tensor and
// why the pre-processor cannot make it.
Result<CameraPlan> plan_camera(const std::string& model, const TensorInfo& input,
                               const PixelChoice& pixels, uint32_t frame_width,
                               uint32_t frame_height);

struct CameraPlaces {
    std::string media, entity, subdev;
};

// Lines for a shell: media-ctl sets the pads, v4l2-ctl the controls.
std::string camera_lines(const CameraPlan& plan, const CameraPlaces& places);

// 0, or -1 with errno, as ioctl().
using CameraIoctl = std::function<int(unsigned long request, void* data)>;

// Sets the pads' sizes, whose codes stay, then all controls at once, found by their names. `device`
// is for messages. Errors: unsupported for a device that lacks a control or has another range; io
// with the system's reason.
Result<void> set_camera(const CameraPlan& plan, const std::string& device,
                        const CameraIoctl& ioctl);

}  // namespace vartml::tools
