// SPDX-License-Identifier: Apache-2.0
// given: names, ranges, fixed point and order of the controls, and codes of the pads, of the driver
// of AMD's video pre-processor and of the page "Streaming Preprocess and AI Layout Formatter" of
// the VEK385 design.
#include "lib/tools/camera_plan.h"

#include <linux/v4l2-subdev.h>
#include <linux/videodev2.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>

#include "lib/base/file.h"

namespace vartml::tools {

namespace {

constexpr double unit = 1 << 23;   // 1 in the fixed point of the controls
constexpr double most_mean = 255;  // of alpha
constexpr double most_scale = 1;   // of beta
constexpr int integer_bits = 8;    // of a code: all of them where a code is a value
constexpr uint32_t least_side = 64, most_width = 8192, most_height = 4320;

std::string text_of(double value) {
    std::array<char, 32> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
    return {buffer.data(), end};
}

// What was written, where a float is only the nearest: 123.675 and not 123.6750030.
double as_written(float value) {
    std::array<char, 32> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
    double read = value;
    std::from_chars(buffer.data(), end, read);
    return read;
}

std::string text_of(const CameraPad& pad) {
    return std::to_string(pad.width) + "x" + std::to_string(pad.height);
}

// "letterbox", "crop 0.875".
std::string resize_words(const PixelChoice& pixels) {
    const std::string words = pixels.words();
    const size_t begin = words.find(", ") + 2;
    return words.substr(begin, words.find(", ", begin) - begin);
}

bool is_size(const CameraPad& pad) {
    return pad.width >= least_side && pad.width <= most_width && pad.height >= least_side &&
           pad.height <= most_height;
}

std::string sizes() {
    return "from " + std::to_string(least_side) + "x" + std::to_string(least_side) + " to " +
           std::to_string(most_width) + "x" + std::to_string(most_height);
}

}  // namespace

Result<CameraPlan> plan_camera(const std::string& model, const TensorInfo& input,
                               const PixelChoice& pixels, uint32_t frame_width,
                               uint32_t frame_height) {
    const auto refuse = [&](const std::string& why) {
        return Error{ErrorCode::unsupported,
                     "model '" + model + "': input '" + input.name + "' " + why};
    };
    const TensorView& view = input.hw ? *input.hw : input.cpu;
    const auto& shape = input.cpu.shape;
    const bool last = input.cpu.layout == Layout::NHWC;
    if (shape.size() != 4 || shape[0] != 1 || shape[last ? 3 : 1] != 3)
        return refuse(
            "is no single picture of three colours, which is what a camera's pre-processor makes; "
            "name another with --input, or compile with --batch-size 1");
    const bool blocks = view.layout == Layout::HCWNC4;
    if (view.data_type != DataType::int8 || (!blocks && view.layout != Layout::NHWC))
        return refuse("is " + std::string(to_string(view.data_type)) + " in layout " +
                      std::string(to_string(view.layout)) +
                      ", and a camera's pre-processor makes int8 in HCWNC4 or NHWC: give a "
                      "quantised model, compiled with \"fe_experiment\": "
                      "\"input-quantization-in-rt=1\" in the file of --config");
    if (pixels.source.empty() || pixels.source.starts_with("the input's type"))
        return refuse(
            "has no recorded pixels: say what it takes with --mean, --scale and --channels of "
            "`vartml compile`, or in a sidecar");
    if (pixels.options.channels == ChannelOrder::gray)
        return refuse("takes gray in three channels, and a camera's pre-processor keeps colours");

    CameraPlan plan;
    plan.pads[0] = {"RBG888_1X24", frame_width, frame_height};
    plan.pads[1] = {blocks || view.shape.back() == 4 ? "RGBA8888_1X32" : "RBG888_1X24",
                    shape[last ? 2 : 3], shape[last ? 1 : 2]};
    if (!is_size(plan.pads[1]))
        return refuse("is " + text_of(plan.pads[1]) +
                      " pixels, and a camera's pre-processor makes pictures " + sizes());
    if (!is_size(plan.pads[0]))
        return Error{ErrorCode::invalid_argument,
                     "--size: is " + text_of(plan.pads[0]) + ", expected the camera's, " + sizes()};

    // Without a step the sidecar's numbers make the codes themselves.
    const Quantisation codes = view.quantisation.value_or(Quantisation{});
    int exponent = 0;
    if (!(codes.scale > 0) || std::frexp(codes.scale, &exponent) != 0.5)
        return refuse("has the quantisation scale " +
                      text_of(as_written(static_cast<float>(codes.scale))) +
                      ", and a camera's pre-processor has powers of two alone");
    // The step is 2^(exponent - 1); what the position of the point cannot say is left to beta.
    int bits = std::clamp(integer_bits + exponent - 1, 0, integer_bits);
    std::array<double, 3> mean{}, scale{};
    for (size_t c = 0; c < 3; ++c) {
        const double value_scale = as_written(pixels.options.scale[c]);
        mean[c] = as_written(pixels.options.mean[c]) - codes.zero_point * codes.scale / value_scale;
        scale[c] = value_scale / codes.scale / std::ldexp(1, integer_bits - bits);
    }
    while (bits > 0 && *std::ranges::max_element(scale) > most_scale) {
        --bits;
        for (double& s : scale) s /= 2;
    }

    static constexpr const char* colours[] = {"red", "green", "blue"};
    static constexpr size_t slots[] = {1, 2, 0};  // green, blue, red
    const bool bgr = pixels.options.channels == ChannelOrder::bgr;
    for (const bool is_mean : {true, false}) {
        const char* const name = is_mean ? "preprocess_param_alpha_" : "preprocess_param_beta_";
        const double most = is_mean ? most_mean : most_scale;
        for (size_t slot = 0; slot < 3; ++slot) {
            const size_t colour = slots[slot], channel = bgr ? 2 - colour : colour;
            const double value = is_mean ? mean[channel] : scale[channel];
            const double fixed = std::round(value * unit);
            if (!(fixed >= (is_mean ? 0 : 1) && fixed <= most * unit))
                return refuse("needs " + text_of(value) + " for " + colours[colour] +
                              " in control '" + name + std::to_string(slot + 1) +
                              "', which takes " + (is_mean ? "0" : "2^-23") + " to " +
                              text_of(most));
            plan.controls.push_back({name + std::to_string(slot + 1), static_cast<int32_t>(fixed)});
        }
    }
    plan.controls.push_back({"preprocess_int8_out_ibits", bits});

    if (bgr)
        plan.warnings.push_back("input '" + input.name +
                                "' takes BGR: the pre-processor makes the order that it was built "
                                "with, so it must be one that is built for BGR");
    if (pixels.options.resize != ResizeMode::stretch)
        plan.warnings.push_back(
            "input '" + input.name + "' takes " + resize_words(pixels) +
            ": the pre-processor stretches the whole picture, without border or crop");
    return plan;
}

std::string camera_lines(const CameraPlan& plan, const CameraPlaces& places) {
    std::string lines;
    for (size_t pad = 0; pad < 2; ++pad)
        lines += "media-ctl -d " + places.media + " -V '\"" + places.entity +
                 "\":" + std::to_string(pad) + " [fmt:" + plan.pads[pad].code + "/" +
                 text_of(plan.pads[pad]) + " field:none]'\n";
    for (const CameraControl& control : plan.controls)
        lines += "v4l2-ctl -d " + places.subdev + " --set-ctrl=" + control.name + "=" +
                 std::to_string(control.value) + "\n";
    return lines;
}

namespace {

Result<void> set_pads(const CameraPlan& plan, const std::string& device, const CameraIoctl& ioctl) {
    for (uint32_t pad = 0; pad < 2; ++pad) {
        v4l2_subdev_format format = {};
        format.which = V4L2_SUBDEV_FORMAT_ACTIVE;
        format.pad = pad;
        const std::string name = "pad " + std::to_string(pad);
        if (ioctl(VIDIOC_SUBDEV_G_FMT, &format) != 0)
            return system_error(device, "read the format of " + name, errno);
        format.format.width = plan.pads[pad].width;
        format.format.height = plan.pads[pad].height;
        format.format.field = V4L2_FIELD_NONE;
        if (ioctl(VIDIOC_SUBDEV_S_FMT, &format) != 0)
            return system_error(device, "set the format of " + name, errno);
        const CameraPad got = {"", format.format.width, format.format.height};
        if (got.width != plan.pads[pad].width || got.height != plan.pads[pad].height)
            return Error{ErrorCode::unsupported, device + ": " + name + " takes " + text_of(got) +
                                                     ", expected " + text_of(plan.pads[pad])};
    }
    return {};
}

// All controls of the device by their names.
std::map<std::string, v4l2_query_ext_ctrl> list_controls(const CameraIoctl& ioctl) {
    std::map<std::string, v4l2_query_ext_ctrl> all;
    v4l2_query_ext_ctrl query = {};
    query.id = V4L2_CTRL_FLAG_NEXT_CTRL;
    while (ioctl(VIDIOC_QUERY_EXT_CTRL, &query) == 0) {
        all.emplace(std::string(query.name, strnlen(query.name, sizeof query.name)), query);
        const uint32_t last = query.id;
        query = {};
        query.id = last | V4L2_CTRL_FLAG_NEXT_CTRL;
    }
    return all;
}

}  // namespace

Result<void> set_camera(const CameraPlan& plan, const std::string& device,
                        const CameraIoctl& ioctl) {
    // Nothing is set on a device that is another one.
    const auto all = list_controls(ioctl);
    std::vector<v4l2_ext_control> values;
    for (const CameraControl& control : plan.controls) {
        const auto found = all.find(control.name);
        if (found == all.end())
            return Error{ErrorCode::unsupported,
                         device + ": has no control '" + control.name +
                             "', so it is not the sub-device of a pre-processor, or its driver is "
                             "older; `v4l2-ctl -d " +
                             device + " --list-ctrls` lists its controls"};
        const v4l2_query_ext_ctrl& range = found->second;
        if (control.value < range.minimum || control.value > range.maximum)
            return Error{ErrorCode::unsupported, device + ": control '" + control.name +
                                                     "' takes " + std::to_string(range.minimum) +
                                                     " to " + std::to_string(range.maximum) +
                                                     ", and the model needs " +
                                                     std::to_string(control.value)};
        v4l2_ext_control value = {};
        value.id = range.id;
        value.value = control.value;
        values.push_back(value);
    }
    if (auto done = set_pads(plan, device, ioctl); !done) return done;
    v4l2_ext_controls request = {};
    request.which = V4L2_CTRL_WHICH_CUR_VAL;
    request.count = static_cast<uint32_t>(values.size());
    request.controls = values.data();
    if (ioctl(VIDIOC_S_EXT_CTRLS, &request) == 0) return {};
    const int reason = errno;
    const std::string which = request.error_idx < plan.controls.size()
                                  ? "control '" + plan.controls[request.error_idx].name + "'"
                                  : "the controls";
    return system_error(device, "set " + which, reason);
}

}  // namespace vartml::tools
