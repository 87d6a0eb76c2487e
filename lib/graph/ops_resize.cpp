// SPDX-License-Identifier: Apache-2.0
// Resampling: Resize, and sampling at positions that the data gives.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "lib/graph/kernel.h"
#include "lib/graph/moves.h"
#include "lib/graph/numbers.h"
#include "lib/graph/ops.h"
#include "lib/graph/resize_position.h"
#include "lib/graph/sampling.h"

namespace vartml::graph {
namespace {

using Ints = std::vector<int64_t>;

Result<Types> infer_resize(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    const auto sizes = node.get("sizes", Ints());
    if (node.inputs.size() > 1) {
        return Error{ErrorCode::unsupported, "node '" + node.name +
                                                 "' (Resize) takes its sizes or scales from a "
                                                 "tensor that depends on the input data; "
                                                 "export the model with static shapes"};
    }
    if (sizes.size() != x.shape.size() ||
        node.get("scales", std::vector<float>(sizes.size())).size() != sizes.size()) {
        return bad_node(node, "resizes " + to_string(x) + " to " + to_string(sizes) +
                                  ", expected one size and one scale per axis");
    }
    return Types{{x.data_type, sizes}};
}

uint64_t count_resampling(const Graph& graph, const Node& node) {
    const std::string mode = node.get("mode", node.kind == "GridSample" ? "linear" : "nearest");
    const uint64_t per_element = mode == "nearest" ? 0 : mode == "cubic" ? 31 : 7;
    return per_element * count_output(graph, node);
}

Result<Types> infer_grid_sample(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &grid = input_type(graph, node, 1);
    const size_t rank = x.shape.size();
    if (rank < 3 || grid.shape.size() != rank || grid.shape[0] != x.shape[0] ||
        grid.shape.back() != static_cast<int64_t>(rank) - 2) {
        return bad_inputs(graph, node);
    }
    Type y{x.data_type, {x.shape[0], x.shape[1]}};
    y.shape.insert(y.shape.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
    return Types{y};
}

Result<Types> infer_affine_grid(const Graph& graph, const Node& node) {
    const Type& theta = input_type(graph, node, 0);
    const auto size = node.get("size", Ints());
    if (size.size() < 4 || theta.shape.size() != 3) {
        return bad_node(
            node, "has the size " + to_string(size) + ", expected a constant of 4 or 5 numbers");
    }
    const auto rank = static_cast<int64_t>(size.size()) - 2;
    if (theta.shape != Ints{size[0], rank, rank + 1}) {
        return bad_node(node, "has the matrices " + to_string(theta) + " for the size " +
                                  to_string(size) + ", which do not go together");
    }
    Type y{theta.data_type, {size[0]}};
    y.shape.insert(y.shape.end(), size.begin() + 2, size.end());
    y.shape.push_back(rank);
    return Types{y};
}

}  // namespace
}  // namespace vartml::graph

namespace vartml::cpu {
namespace {

// Weights and rounding that the resampling operators share.

// A blend as an element. Integers drop the fraction; weights that miss a sum of one by the
// rounding of their own do not cost a whole unit.
template <typename T>
T from_blend(double blend) {
    if constexpr (std::is_integral_v<T> || std::is_same_v<T, graph::Bool>) {
        const double whole = std::nearbyint(blend);
        return graph::convert<T>(std::fabs(blend - whole) < 1e-5 ? whole : blend);
    } else {
        return graph::convert<T>(blend);
    }
}

// What the node says about one axis.
struct Axis : graph::ResizeAxis {
    double roi_start = 0, roi_end = 1;
};

// The source elements that make one position of the output, and their weights.
struct ResizeTaps {
    std::vector<int64_t> index;
    std::vector<double> weight;
};

struct Resampling {
    std::string mode, coordinates, rounding;
    bool antialias, exclude_outside, crops;
    double cubic_a;
};

double source_position(const Axis& axis, const Resampling& how, int64_t position) {
    if (how.coordinates != "tf_crop_and_resize")
        return graph::resize_position(how.coordinates, axis, position, how.mode == "nearest");
    const auto src = static_cast<double>(axis.src), dst = static_cast<double>(axis.dst);
    const double start = axis.roi_start * (src - 1), end = axis.roi_end * (src - 1);
    if (axis.dst == 1) return (start + end) / 2;
    return start + static_cast<double>(position) * (end - start) / (dst - 1);
}

ResizeTaps make_taps(const Axis& axis, const Resampling& how, double x) {
    const auto last = static_cast<double>(axis.src - 1);
    // Far outside everything is the edge.
    x = std::isnan(x) ? 0 : std::clamp(x, -4.0, last + 4.0);
    if (how.mode == "nearest") {
        const double at = std::clamp(graph::nearest_position(how.rounding, x), 0.0, last);
        return {{static_cast<int64_t>(at)}, {1}};
    }
    const bool cubic = how.mode == "cubic";
    // When it makes smaller, antialias widens the filter to what one output element covers.
    const double squeeze = how.antialias ? std::min(axis.scale, 1.0) : 1.0;
    const double radius = std::min((cubic ? 2 : 1) / squeeze, 2 * last + 8);
    ResizeTaps taps;
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

std::vector<ResizeTaps> axis_taps(const Axis& axis, const Resampling& how) {
    std::vector<ResizeTaps> all;
    for (int64_t i = 0; i < axis.dst; ++i)
        all.push_back(make_taps(axis, how, source_position(axis, how, i)));
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
        const bool given = i < scales.size();
        axes[i] = {graph::resize_axis(src[i], dst[i], given ? &scales[i] : nullptr), 0, 1};
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
        for (const ResizeTaps& taps : axis_taps(axes[i], how))
            offsets[i].push_back(taps.index[0] * strides[i]);
    }
    gather_axes(offsets, x.shape, vartml::size_bytes(x.type), x.data, y.data);
}

// One axis of a tensor seen as outer * size * inner elements.
template <typename Blend>
void blend_axis(const Blend* src, Blend* dst, const AxisView& view,
                const std::vector<ResizeTaps>& taps) {
    for (int64_t outer = 0; outer < view.outer; ++outer, src += view.size * view.inner) {
        for (const ResizeTaps& tap : taps) {
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
            const double x = source_position(axes[axis], how, i);
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

// Sampling at positions that the data gives: GridSample, and AffineGrid, which makes positions.

constexpr size_t max_spatial = max_rank - 2;

// Elements of one channel and their weights: the product of those of the axes.
struct Taps {
    std::vector<int64_t> index;
    std::vector<double> weight;
};

void multiply_taps(const std::array<AxisTaps, max_spatial>& axes, size_t rank,
                   const Strides& strides, Taps& taps) {
    taps.index.assign(1, 0);
    taps.weight.assign(1, 1);
    for (size_t axis = 0; axis < rank; ++axis) {
        // From the back, so that each entry is read before its place is taken.
        const size_t before = taps.index.size(), count = axes[axis].count;
        taps.index.resize(before * count);
        taps.weight.resize(before * count);
        for (size_t i = count == 0 ? 0 : before; i-- > 0;) {
            const int64_t index = taps.index[i];
            const double weight = taps.weight[i];
            for (size_t k = 0; k < count; ++k) {
                taps.index[i * count + k] = index + axes[axis].index[k] * strides[axis];
                taps.weight[i * count + k] = weight * axes[axis].weight[k];
            }
        }
    }
}

template <typename T>
void sample(const Array& x, const Taps& taps, int64_t channels, const T* src, T* dst,
            int64_t dst_stride) {
    const int64_t plane = around_axis(x.shape, 1).inner;
    for (int64_t c = 0; c < channels; ++c, src += plane, dst += dst_stride) {
        double sum = 0;
        for (size_t i = 0; i < taps.index.size(); ++i)
            sum += taps.weight[i] * graph::convert<double>(src[taps.index[i]]);
        *dst = from_blend<T>(sum);
    }
}

// C: float or double, the type of the arithmetic on coordinates.
template <typename T, typename C>
void grid_sample_as(const Call& call) {
    const Array &x = call.inputs[0], &grid = call.inputs[1], &y = call.outputs[0];
    const Sampling how = read_sampling(call.node);
    const size_t rank = x.shape.size() - 2;
    const Strides strides = strides_of(x.shape);
    Strides spatial{};
    std::copy(strides.begin() + 2, strides.end(), spatial.begin());
    const int64_t points = around_axis(y.shape, 1).inner, channels = x.shape[1];
    std::array<AxisTaps, max_spatial> axes;
    Taps taps;
    const std::vector<C> coordinates = read_numbers<C>(grid);
    const C* coordinate = coordinates.data();
    for (int64_t n = 0; n < x.shape[0]; ++n) {
        const T* src = x.as<T>() + n * strides[0];
        T* dst = y.as<T>() + n * channels * points;
        for (int64_t i = 0; i < points; ++i, coordinate += rank) {
            for (size_t axis = 0; axis < rank; ++axis) {
                // Coordinates are listed with the last axis first.
                const int64_t size = x.shape[axis + 2];
                axes[axis] = sample_axis(coordinate[rank - 1 - axis], size, how);
            }
            multiply_taps(axes, rank, spatial, taps);
            sample(x, taps, channels, src, dst + i, points);
        }
    }
}

Result<void> grid_sample(const Call& call) {
    const Array &x = call.inputs[0], &grid = call.inputs[1], &y = call.outputs[0];
    const size_t rank = x.shape.size();
    if (rank < 3 || grid.shape.size() != rank ||
        grid.shape.back() != static_cast<int64_t>(rank - 2))
        return bad_data(call, "has a grid that does not fit its data");
    if (y.elements() == 0) return {};
    if (x.elements() == 0) return bad_data(call, "samples a tensor without elements");
    const bool known = graph::with_type(x.type, [&]<typename T>(T) {
        if (grid.type == DataType::float64) return grid_sample_as<T, double>(call);
        grid_sample_as<T, float>(call);
    });
    return known ? Result<void>() : no_type(call, x.type);
}

// Coordinate from -1 to 1 of a position along an axis of the output.
double coordinate_of(int64_t position, int64_t size, bool align_corners) {
    const auto at = static_cast<double>(position), length = static_cast<double>(size);
    if (!align_corners) return (2 * at + 1) / length - 1;
    return size == 1 ? 0 : 2 * at / (length - 1) - 1;
}

template <typename T>
void affine_grid_as(const Call& call) {
    const Array &theta = call.inputs[0], &y = call.outputs[0];
    const bool align_corners = call.node.get("align_corners", int64_t{0}) != 0;
    const auto rank = static_cast<size_t>(y.shape.back());
    Walk<1> walk(y.shape, {});
    const int64_t points = y.elements() / y.shape.back();
    T* dst = y.as<T>();
    for (int64_t i = 0; i < points; ++i) {
        const T* row = theta.as<T>() + walk.index(0) * static_cast<int64_t>(rank * (rank + 1));
        for (size_t k = 0; k < rank; ++k, row += rank + 1) {
            double sum = graph::convert<double>(row[rank]);
            for (size_t j = 0; j < rank; ++j) {
                const size_t axis = rank - j;  // x is the last axis
                sum += graph::convert<double>(row[j]) *
                       coordinate_of(walk.index(axis), y.shape[axis], align_corners);
            }
            *dst++ = graph::convert<T>(sum);
        }
        for (size_t k = 0; k < rank; ++k) walk.next();
    }
}

Result<void> affine_grid(const Call& call) {
    const Array &theta = call.inputs[0], &y = call.outputs[0];
    const int64_t rank = y.shape.back();
    if (theta.shape.size() != 3 || theta.shape[0] != y.shape[0] || theta.shape[1] != rank ||
        theta.shape[2] != rank + 1) {
        return bad_data(call, "has matrices that do not fit its size");
    }
    if (y.elements() == 0) return {};
    bool known = false;
    graph::with_type(theta.type, [&]<typename T>(T) {
        if constexpr (std::is_floating_point_v<Number<T>>) {
            affine_grid_as<T>(call);
            known = true;
        }
    });
    return known ? Result<void>() : no_type(call, theta.type);
}

}  // namespace
}  // namespace vartml::cpu

namespace vartml::graph {
namespace {

constexpr OpInfo rows[] = {
    {"Resize", 1, 4, 1, 1,
     "antialias:i=0 coordinate_transformation_mode:s=half_pixel|half_pixel_symmetric|"
     "pytorch_half_pixel|align_corners|asymmetric|tf_crop_and_resize|tf_half_pixel_for_nn "
     "cubic_coeff_a:f=-0.75 exclude_outside:i=0 extrapolation_value:f=0 "
     "mode:s=nearest|linear|cubic "
     "nearest_mode:s=round_prefer_floor|round_prefer_ceil|floor|ceil roi:fs@1 scales:fs@2 "
     "sizes:is@3",
     infer_resize, count_resampling, cpu::resize,
     Trait::picture_work | Trait::keeps_rank | Trait::follows_shape},
    {"GridSample", 2, 2, 1, 1,
     "align_corners:i=0 mode:s=linear|nearest|cubic/bilinear|bicubic "
     "padding_mode:s=zeros|border|reflection",
     infer_grid_sample, count_resampling, cpu::grid_sample, Trait::exact_1},
    {"AffineGrid", 1, 2, 1, 1, "align_corners:i=0 size:is@1", infer_affine_grid, count_none,
     cpu::affine_grid},
};

}  // namespace

std::span<const OpInfo> resize_ops() {
    return rows;
}

}  // namespace vartml::graph
