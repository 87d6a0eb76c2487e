// SPDX-License-Identifier: Apache-2.0
// Resize: nearest moves elements; linear and cubic blend along one axis after the other.
#include <algorithm>
#include <cmath>

#include "lib/cpu/kernel.h"
#include "lib/cpu/moves.h"
#include "lib/cpu/resample.h"

namespace vartml::cpu {

namespace {

// What the node says about one axis.
struct Axis {
    int64_t src = 0, dst = 0;
    double scale = 1;
    double roi_start = 0, roi_end = 1;
};

// The source elements that make one position of the output, and their weights.
struct Taps {
    std::vector<int64_t> index;
    std::vector<double> weight;
};

struct Resampling {
    std::string mode, coordinates, rounding;
    bool antialias, exclude_outside, crops;
    double cubic_a;
};

// given: ONNX operator Resize, coordinate_transformation_mode; length_resized is scale * length.
double source_position(const Axis& axis, const std::string& mode, int64_t position) {
    const auto x = static_cast<double>(position);
    const auto src = static_cast<double>(axis.src), dst = static_cast<double>(axis.dst);
    if (mode == "asymmetric") return x / axis.scale;
    if (mode == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
    if (mode == "align_corners") {
        return axis.dst == 1 ? 0 : x * (src - 1) / (axis.scale * src - 1);
    }
    if (mode == "tf_crop_and_resize") {
        const double start = axis.roi_start * (src - 1), end = axis.roi_end * (src - 1);
        return axis.dst == 1 ? (start + end) / 2 : start + x * (end - start) / (dst - 1);
    }
    if (mode == "pytorch_half_pixel" && axis.dst == 1) return 0;
    if (mode == "half_pixel_symmetric") {
        const double adjustment = dst / (axis.scale * src);
        return src / 2 * (1 - adjustment) + (x + 0.5) / axis.scale - 0.5;
    }
    return (x + 0.5) / axis.scale - 0.5;
}

// given: ONNX operator Resize, nearest_mode
double nearest(const std::string& mode, double x) {
    if (mode == "floor") return std::floor(x);
    if (mode == "ceil") return std::ceil(x);
    if (mode == "round_prefer_ceil") return std::floor(x + 0.5);
    return std::ceil(x - 0.5);
}

Taps make_taps(const Axis& axis, const Resampling& how, double x) {
    const auto last = static_cast<double>(axis.src - 1);
    // Far outside everything is the edge.
    x = std::isnan(x) ? 0 : std::clamp(x, -4.0, last + 4.0);
    if (how.mode == "nearest") {
        const double at = std::clamp(nearest(how.rounding, x), 0.0, last);
        return {{static_cast<int64_t>(at)}, {1}};
    }
    const bool cubic = how.mode == "cubic";
    // When it makes smaller, antialias widens the filter to what one output element covers.
    const double squeeze = how.antialias ? std::min(axis.scale, 1.0) : 1.0;
    const double radius = std::min((cubic ? 2 : 1) / squeeze, 2 * last + 8);
    Taps taps;
    double sum = 0;
    for (double at = std::floor(x - radius) + 1; at < x + radius; ++at) {
        const bool outside = at < 0 || at > last;
        const double distance = (at - x) * squeeze;
        const double weight =
            cubic ? cubic_weight(distance, how.cubic_a) : std::max(1 - std::fabs(distance), 0.0);
        // Without weight, an infinite element has no effect.
        if (weight == 0 || (outside && how.exclude_outside)) continue;
        taps.index.push_back(static_cast<int64_t>(std::clamp(at, 0.0, last)));
        taps.weight.push_back(weight);
        sum += weight;
    }
    if (taps.index.empty()) {
        taps.index.push_back(static_cast<int64_t>(std::clamp(x, 0.0, last)));
        taps.weight.push_back(1);
        return taps;
    }
    if ((how.antialias || how.exclude_outside) && sum != 0) {
        for (double& weight : taps.weight) weight /= sum;
    }
    return taps;
}

std::vector<Taps> axis_taps(const Axis& axis, const Resampling& how) {
    std::vector<Taps> all;
    for (int64_t i = 0; i < axis.dst; ++i)
        all.push_back(make_taps(axis, how, source_position(axis, how.coordinates, i)));
    return all;
}

bool is_whole(const Axis& axis, const Resampling& how) {
    return axis.src == axis.dst && axis.scale == 1 &&
           (!how.crops || (axis.roi_start == 0 && axis.roi_end == 1));
}

Resampling read_resampling(const graph::Node& node) {
    Resampling how;
    how.mode = node.get("mode", "nearest");
    how.coordinates = node.get("coordinate_transformation_mode", "half_pixel");
    how.rounding = node.get("nearest_mode", "round_prefer_floor");
    how.antialias = node.get("antialias", int64_t{0}) != 0;
    how.exclude_outside = node.get("exclude_outside", int64_t{0}) != 0;
    how.crops = how.coordinates == "tf_crop_and_resize";
    how.cubic_a = static_cast<double>(node.get("cubic_coeff_a", -0.75F));
    return how;
}

std::vector<Axis> read_axes(const Call& call) {
    const Shape &src = call.inputs[0].shape, &dst = call.outputs[0].shape;
    const auto scales = call.node.get("scales", std::vector<float>());
    const auto roi = call.node.get("roi", std::vector<float>());
    std::vector<Axis> axes(src.size());
    for (size_t i = 0; i < axes.size(); ++i) {
        axes[i].src = src[i];
        axes[i].dst = dst[i];
        // A scale that is the ratio of the sizes stands for that ratio without rounding.
        const auto from = static_cast<double>(std::max<int64_t>(src[i], 1));
        const double ratio = static_cast<double>(dst[i]) / from;
        const bool exact = i >= scales.size() || scales[i] == static_cast<float>(ratio);
        axes[i].scale = exact ? ratio : static_cast<double>(scales[i]);
        if (roi.size() == 2 * axes.size()) {
            axes[i].roi_start = static_cast<double>(roi[i]);
            axes[i].roi_end = static_cast<double>(roi[axes.size() + i]);
        }
    }
    return axes;
}

void move_nearest(const Array& x, const Array& y, const std::vector<Axis>& axes,
                  const Resampling& how) {
    const Strides strides = strides_of(x.shape);
    Offsets offsets = all_offsets(x.shape);
    for (size_t i = 0; i < axes.size(); ++i) {
        if (is_whole(axes[i], how)) continue;
        offsets[i].clear();
        for (const Taps& taps : axis_taps(axes[i], how))
            offsets[i].push_back(taps.index[0] * strides[i]);
    }
    gather_axes(offsets, x.shape, vartml::size_bytes(x.type), x.data, y.data);
}

// One axis of a tensor seen as outer * size * inner elements.
template <typename Blend>
void blend_axis(const Blend* src, Blend* dst, const AxisView& view, const std::vector<Taps>& taps) {
    for (int64_t outer = 0; outer < view.outer; ++outer, src += view.size * view.inner) {
        for (const Taps& tap : taps) {
            for (int64_t i = 0; i < view.inner; ++i) {
                double sum = 0;
                for (size_t k = 0; k < tap.index.size(); ++k)
                    sum += tap.weight[k] * static_cast<double>(src[tap.index[k] * view.inner + i]);
                *dst++ = static_cast<Blend>(sum);
            }
        }
    }
}

template <typename T>
void blend(const Array& x, const Array& y, const std::vector<Axis>& axes, const Resampling& how) {
    // Wide integers keep their bits in double only.
    using Blend = std::conditional_t<(sizeof(T) > 2 && !std::is_same_v<T, float>), double, float>;
    std::vector<Blend> now(static_cast<size_t>(x.elements())), next;
    const auto elements = x.span<T>();
    for (size_t i = 0; i < now.size(); ++i) now[i] = graph::convert<Blend>(elements[i]);
    Shape shape = x.shape;
    for (size_t axis = axes.size(); axis-- > 0;) {
        if (is_whole(axes[axis], how)) continue;
        const AxisView view = around_axis(shape, axis);
        shape[axis] = axes[axis].dst;
        next.resize(static_cast<size_t>(shape.elements()));
        blend_axis(now.data(), next.data(), view, axis_taps(axes[axis], how));
        now.swap(next);
    }
    const auto out = y.span<T>();
    for (size_t i = 0; i < out.size(); ++i) out[i] = from_blend<T>(static_cast<double>(now[i]));
}

// given: ONNX operator Resize, extrapolation_value: positions that are outside along any axis.
void extrapolate(const Call& call, const std::vector<Axis>& axes, const Resampling& how) {
    const Array& y = call.outputs[0];
    const float value = call.node.get("extrapolation_value", 0.0F);
    std::vector<std::vector<bool>> outside(axes.size());
    for (size_t axis = 0; axis < axes.size(); ++axis) {
        for (int64_t i = 0; i < axes[axis].dst; ++i) {
            const double x = source_position(axes[axis], how.coordinates, i);
            outside[axis].push_back(!(x >= 0 && x <= static_cast<double>(axes[axis].src - 1)));
        }
    }
    graph::with_type(y.type, [&]<typename T>(T) {
        Walk<1> walk(y.shape, {});
        for (T& element : y.span<T>()) {
            bool is_outside = false;
            for (size_t axis = 0; axis < axes.size(); ++axis)
                is_outside = is_outside || outside[axis][static_cast<size_t>(walk.index(axis))];
            if (is_outside) element = graph::convert<T>(value);
            walk.next();
        }
    });
}

Result<void> resize(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    if (y.elements() == 0) return {};
    if (x.elements() == 0) return bad_data(call, "resizes a tensor without elements");
    const Resampling how = read_resampling(call.node);
    const std::vector<Axis> axes = read_axes(call);
    for (const Axis& axis : axes) {
        if (!(axis.scale > 0)) return bad_data(call, "has a scale that is not above 0");
    }
    if (how.mode == "nearest") {
        move_nearest(x, y, axes, how);
    } else {
        const bool known =
            graph::with_type(x.type, [&]<typename T>(T) { blend<T>(x, y, axes, how); });
        if (!known) return no_type(call, x.type);
    }
    if (how.crops) extrapolate(call, axes, how);
    return {};
}

constexpr KernelRow rows[] = {{"Resize", resize}};

}  // namespace

std::span<const KernelRow> picture_resize_kernels() {
    return rows;
}

}  // namespace vartml::cpu
