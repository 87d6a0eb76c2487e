// SPDX-License-Identifier: Apache-2.0
// Where an element that Resize makes lies in what it is made from, along one axis: for plain loops
// and for the steps of the software NPU alike.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace vartml::graph {

// Lengths of an axis, and the scale between them.
struct ResizeAxis {
    int64_t src = 0, dst = 0;
    double scale = 1;
    bool is_ratio = true;  // the scale is dst / src, unrounded
};

// A scale in float that is the ratio of the lengths stands for that ratio.
inline ResizeAxis resize_axis(int64_t src, int64_t dst, const float* given) {
    const double ratio = static_cast<double>(dst) / static_cast<double>(std::max<int64_t>(src, 1));
    if (!given || *given == static_cast<float>(ratio)) return {src, dst, ratio, true};
    return {src, dst, static_cast<double>(*given), false};
}

// Of element `x` of dst in elements of src. Where the scale is the ratio it is divided last, so
// that whole positions and halves, which rounding turns on, are what they are: 9 of 18 is 7 of 14,
// and 9 / (18 / 14.) is less. Where it is a rounded float, `is_nearest` divides in float as others
// do: 3 / 0.6f is 5, and less in double. given: ONNX operator Resize,
// coordinate_transformation_mode, all but tf_crop_and_resize; length_resized is scale * length.
inline double resize_position(std::string_view mode, const ResizeAxis& axis, int64_t x,
                              bool is_nearest) {
    const auto position = static_cast<double>(x);
    const auto src = static_cast<double>(axis.src), dst = static_cast<double>(axis.dst);
    const auto scaled = [&](double to) {
        const double from = to / axis.scale;
        return is_nearest ? static_cast<double>(static_cast<float>(from)) : from;
    };
    if (mode == "asymmetric") return axis.is_ratio ? position * src / dst : scaled(position);
    if (mode == "tf_half_pixel_for_nn")
        return axis.is_ratio ? (2 * position + 1) * src / (2 * dst) : scaled(position + 0.5);
    if (mode == "align_corners") {
        if (axis.dst == 1) return 0;
        return position * (src - 1) / (axis.is_ratio ? dst - 1 : axis.scale * src - 1);
    }
    if (mode == "pytorch_half_pixel" && axis.dst == 1) return 0;
    if (axis.is_ratio) return ((2 * position + 1) * src / dst - 1) / 2;
    const double half_pixel = scaled(position + 0.5) - 0.5;
    if (mode != "half_pixel_symmetric") return half_pixel;
    return src / 2 * (1 - dst / (axis.scale * src)) + half_pixel;
}

// given: ONNX operator Resize, nearest_mode
inline double nearest_position(std::string_view mode, double x) {
    if (mode == "floor") return std::floor(x);
    if (mode == "ceil") return std::ceil(x);
    if (mode == "round_prefer_ceil") return std::floor(x + 0.5);
    return std::ceil(x - 0.5);
}

}  // namespace vartml::graph
