// SPDX-License-Identifier: Apache-2.0
// Convolution whose taps are shifted by offsets that are data.
#include <cmath>

#include "lib/cpu/columns.h"

namespace vartml::cpu {

namespace {

// Linear between the elements around a place, along all axes; outside of the tensor lies 0.
template <typename T>
T sample(const T* channel, const Shape& size, const std::array<T, max_rank>& place) {
    const size_t rank = size.size();
    std::array<T, max_rank> part{};  // of the upper neighbour
    Index low{};
    for (size_t axis = 0; axis < rank; ++axis) {
        // Also false for NaN, and before the conversion to an integer could overflow.
        if (!(place[axis] > T(-1) && place[axis] < static_cast<T>(size[axis]))) return 0;
        const T floor = std::floor(place[axis]);
        low[axis] = static_cast<int64_t>(floor);
        part[axis] = place[axis] - floor;
    }
    T sum = 0;
    for (size_t corner = 0; corner < size_t{1} << rank; ++corner) {
        T weight = 1;
        int64_t at = 0;
        bool inside = true;
        for (size_t axis = 0; axis < rank; ++axis) {
            const bool upper = (corner >> axis & 1) != 0;
            const int64_t i = low[axis] + (upper ? 1 : 0);
            inside &= i >= 0 && i < size[axis];
            weight *= upper ? part[axis] : 1 - part[axis];
            at = at * size[axis] + i;
        }
        if (inside && weight != 0) sum += weight * channel[at];
    }
    return sum;
}

// x w offset bias? mask?
template <typename T>
void deform_conv_as(const Call& call) {
    const Array &x = call.inputs[0], &w = call.inputs[1], &y = call.outputs[0];
    const auto optional = [&](size_t i) { return call.has_input(i) ? call.inputs[i] : Array(); };
    const Numbers<T> xs(x), ws(w), offsets(call.inputs[2]), bias(optional(3)), mask(optional(4));
    Sums<T> sums(y);
    const Sliding window = sliding(call.node, x.shape, y.shape, spatial(w.shape));
    const int64_t rank = static_cast<int64_t>(window.rank()), taps = window.kernel.elements();
    const int64_t group = call.node.get("group", int64_t{1});
    const int64_t offset_group = call.node.get("offset_group", int64_t{1});
    const int64_t inputs = w.shape[1], outputs = w.shape[0] / group, depth = inputs * taps;
    const int64_t size = window.size.elements(), positions = window.positions.elements();
    const int64_t channels_per_offset = x.shape[1] / offset_group;
    std::vector<T> block;
    for (int64_t i = 0; i < x.shape[0] * group; ++i) {
        const int64_t image = i / group, first_channel = i % group * inputs;
        // Row k is tap k % taps of channel k / taps of the group.
        const auto fill = [&](int64_t k, int64_t rows, int64_t p, int64_t columns, T* to) {
            for (int64_t row = k; row < k + rows; ++row) {
                const int64_t channel = first_channel + row / taps;
                const int64_t shift =  // which offsets of the image
                    (image * offset_group + channel / channels_per_offset) * taps + row % taps;
                const Index tap = index_of(row % taps, window.kernel);
                Index position = index_of(p, window.positions);
                for (int64_t at = p; at < p + columns; ++at) {
                    std::array<T, max_rank> place{};
                    for (size_t axis = 0; axis < window.rank(); ++axis)
                        place[axis] =
                            static_cast<T>(window.start(axis, position[axis], tap[axis])) +
                            offsets[(shift * rank + static_cast<int64_t>(axis)) * positions + at];
                    const T value = sample(xs.data() + (image * x.shape[1] + channel) * size,
                                           window.size, place);
                    *to++ = mask.data() ? value * mask[shift * positions + at] : value;
                    advance(position, window.positions, window.rank());
                }
            }
        };
        T* to = sums.data() + i * outputs * positions;
        for (int64_t m = 0; m < outputs; ++m)
            std::fill_n(to + m * positions, positions,
                        bias.data() ? bias[i % group * outputs + m] : T());
        convolve(outputs, depth, positions, ws.data() + i % group * outputs * depth, fill, block,
                 to);
    }
    sums.store();
}

Result<void> deform_conv(const Call& call) {
    const bool known = with_float(call.inputs[0].type, [&]<typename T>(T) {
        if (call.outputs[0].elements() > 0) deform_conv_as<Computed<T>>(call);
    });
    if (!known) return no_type(call, call.inputs[0].type);
    return {};
}

constexpr KernelRow kernels[] = {{"DeformConv", deform_conv}};

}  // namespace

std::span<const KernelRow> deform_kernels() {
    return kernels;
}

}  // namespace vartml::cpu
