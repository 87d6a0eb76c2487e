// SPDX-License-Identifier: Apache-2.0
// Sampling at positions that the data gives: GridSample, and AffineGrid, which makes positions.
#include <algorithm>
#include <array>
#include <cmath>

#include "lib/cpu/kernel.h"
#include "lib/cpu/moves.h"
#include "lib/cpu/resample.h"

namespace vartml::cpu {

namespace {

constexpr size_t max_spatial = max_rank - 2;

enum class Mode { nearest, linear, cubic };
enum class Padding { zeros, border, reflection };

struct Sampling {
    Mode mode;
    Padding padding;
    bool align_corners;
    double low(int64_t) const { return align_corners ? 0 : -0.5; }
    double high(int64_t size) const {
        return static_cast<double>(size) - (align_corners ? 1 : 0.5);
    }
};

Sampling read_sampling(const graph::Node& node) {
    const std::string mode = node.get("mode", "linear");
    const std::string padding = node.get("padding_mode", "zeros");
    return {mode == "nearest" ? Mode::nearest
            : mode == "cubic" ? Mode::cubic
                              : Mode::linear,
            padding == "border"       ? Padding::border
            : padding == "reflection" ? Padding::reflection
                                      : Padding::zeros,
            node.get("align_corners", int64_t{0}) != 0};
}

// A position mirrored at both borders until it is between them.
double reflect(double x, double low, double high) {
    const double range = high - low;
    if (x >= low && x <= high) return x;
    if (range <= 0) return low;
    const double phase = std::fmod(x < low ? low - x : x - low, 2 * range);
    return phase <= range ? low + phase : high - (phase - range);
}

// Position in elements of a coordinate from -1 to 1. The arithmetic is that of the coordinate's
// type, so that ties fall where other implementations let them fall.
template <typename C>
double position_of(C coordinate, int64_t size, const Sampling& how) {
    const auto length = static_cast<C>(size);
    C x = how.align_corners ? (coordinate + 1) / 2 * (length - 1)
                            : ((coordinate + 1) * length - 1) / 2;
    if (how.mode == Mode::nearest) x = std::nearbyint(x);
    const auto at = static_cast<double>(x);
    if (at >= how.low(size) && at <= how.high(size)) return at;
    switch (how.padding) {
        case Padding::border:
            return std::isnan(at) ? 0 : std::clamp(at, 0.0, static_cast<double>(size - 1));
        case Padding::reflection:
            return std::isfinite(at) ? reflect(at, how.low(size), how.high(size)) : 0;
        case Padding::zeros:
            break;
    }
    // Farther away, all elements that count are zeros.
    constexpr double far = 8;
    return std::isnan(at) ? -far : std::clamp(at, -far, static_cast<double>(size) + far);
}

// The element at a whole position, or -1 for a zero.
int64_t element_at(double position, int64_t size, const Sampling& how) {
    const auto last = static_cast<double>(size - 1);
    if (position >= 0 && position <= last) return static_cast<int64_t>(position);
    if (how.padding == Padding::zeros) return -1;
    if (how.padding == Padding::reflection)
        position = std::trunc(reflect(position, how.low(size), how.high(size)));
    return static_cast<int64_t>(std::clamp(position, 0.0, last));
}

// Elements along one axis and their weights.
struct AxisTaps {
    size_t count = 0;
    std::array<int64_t, 4> index{};
    std::array<double, 4> weight{};
};

AxisTaps axis_taps(double x, int64_t size, const Sampling& how) {
    constexpr double keys = -0.75;
    AxisTaps taps;
    const auto add = [&](double position, double weight) {
        const int64_t index = element_at(position, size, how);
        if (index < 0 || weight == 0) return;
        taps.index[taps.count] = index;
        taps.weight[taps.count++] = weight;
    };
    if (how.mode == Mode::nearest) {
        add(std::trunc(x), 1);
        return taps;
    }
    const double base = std::floor(x);
    if (how.mode == Mode::linear) {
        add(base, 1 - (x - base));
        add(base + 1, x - base);
    } else {
        for (int i = -1; i <= 2; ++i) add(base + i, cubic_weight(x - base - i, keys));
    }
    return taps;
}

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
                const double at = position_of(coordinate[rank - 1 - axis], size, how);
                axes[axis] = axis_taps(at, size, how);
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

constexpr KernelRow rows[] = {
    {"AffineGrid", affine_grid},
    {"GridSample", grid_sample},
};

}  // namespace

std::span<const KernelRow> picture_grid_kernels() {
    return rows;
}

}  // namespace vartml::cpu
