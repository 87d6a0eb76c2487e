// SPDX-License-Identifier: Apache-2.0
// Where GridSample reads: elements and their weights for a position that the data gives.
// given: ONNX operator GridSample
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/graph/graph.h"

namespace vartml::cpu {

// The piecewise cubic of Keys, `a` being its free coefficient, at a distance from the centre.
inline double cubic_weight(double distance, double a) {
    const double x = std::fabs(distance);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    return 0;
}

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

inline Sampling read_sampling(const graph::Node& node) {
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

// Elements along one axis and their weights.
struct AxisTaps {
    size_t count = 0;
    std::array<int64_t, 4> index{};
    std::array<double, 4> weight{};
};

// A position mirrored at both borders until it is between them.
inline double reflect(double x, double low, double high) {
    const double range = high - low;
    if (x >= low && x <= high) return x;
    if (range <= 0) return low;
    const double phase = std::fmod(x < low ? low - x : x - low, 2 * range);
    return phase <= range ? low + phase : high - (phase - range);
}

// Position in elements of a coordinate.
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
            // given: PyTorch clips each of the four elements of a cubic, not the position.
            if (how.mode == Mode::cubic) break;
            return std::isnan(at) ? 0 : std::clamp(at, 0.0, static_cast<double>(size - 1));
        case Padding::reflection:
            return std::isfinite(at) ? reflect(at, how.low(size), how.high(size)) : 0;
        case Padding::zeros:
            break;
    }
    // Farther away, all elements that count are zeros, or the one at the border.
    constexpr double far = 8;
    return std::isnan(at) ? -far : std::clamp(at, -far, static_cast<double>(size) + far);
}

// The element at a whole position, or -1 for a zero.
inline int64_t element_at(double position, int64_t size, const Sampling& how) {
    const auto last = static_cast<double>(size - 1);
    if (position >= 0 && position <= last) return static_cast<int64_t>(position);
    if (how.padding == Padding::zeros) return -1;
    if (how.padding == Padding::reflection)
        position = std::trunc(reflect(position, how.low(size), how.high(size)));
    return static_cast<int64_t>(std::clamp(position, 0.0, last));
}

inline AxisTaps axis_taps(double x, int64_t size, const Sampling& how) {
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

// For a coordinate from -1 to 1 along an axis of `size` elements. The arithmetic is that of the
// coordinate's type, so that ties fall where other implementations let them fall.
template <typename C>
AxisTaps sample_axis(C coordinate, int64_t size, const Sampling& how) {
    return axis_taps(position_of(coordinate, size, how), size, how);
}

}  // namespace vartml::cpu
