// SPDX-License-Identifier: Apache-2.0
// A convolution as a product of matrices: weights times columns, one column per output position.
#pragma once
#include <vector>

#include "lib/cpu/products.h"
#include "lib/cpu/window.h"

namespace vartml::cpu {

// So many columns and rows at a time: what the block of a product holds.
inline constexpr int64_t columns_at_once = 256, rows_at_once = 256;

// An index of a shape from its number in row-major order.
inline Index index_of(int64_t number, const Shape& shape) {
    Index index{};
    for (size_t axis = shape.size(); axis-- > 0; number /= shape[axis])
        index[axis] = number % shape[axis];
    return index;
}

// y[m][p] += sum over k of weights[m][k] * column p[k]. fill(k, rows, p, columns, block) writes so
// many rows of so many columns to block[row][column], from row k and column p on.
template <typename T, typename Fill>
void convolve(int64_t outputs, int64_t depth, int64_t positions, const T* weights, Fill fill,
              std::vector<T>& block, T* y) {
    block.resize(static_cast<size_t>(rows_at_once * columns_at_once));
    for (int64_t p = 0; p < positions; p += columns_at_once) {
        const int64_t columns = std::min(columns_at_once, positions - p);
        for (int64_t k = 0; k < depth; k += rows_at_once) {
            const int64_t rows = std::min(rows_at_once, depth - k);
            fill(k, rows, p, columns, block.data());
            add_product(outputs, columns, rows, weights + k, depth, block.data(), columns, y + p,
                        positions);
        }
    }
}

// The columns of a convolution over one image: row k is tap k % taps of channel k / taps.
template <typename T>
void fill_columns(const Sliding& window, const T* x, int64_t k, int64_t rows, int64_t p,
                  int64_t columns, T* to) {
    const size_t last = window.last();
    const int64_t taps = window.kernel.elements(), channel_size = window.size.elements();
    const int64_t stride = window.strides[last];
    const Index begin = index_of(p, window.positions);
    Index tap = index_of(k % taps, window.kernel);
    const T* channel = x + k / taps * channel_size;
    for (int64_t row = 0; row < rows; ++row) {
        Index position = begin;
        for (int64_t left = columns; left > 0;) {
            const int64_t from = position[last];
            const int64_t until = std::min(window.positions[last], from + left);
            const Run run = run_inside(window, position, tap);
            const int64_t low = std::clamp(run.first, from, until);
            const int64_t high = std::clamp(run.last, low, until);
            to = std::fill_n(to, low - from, T());
            if (stride == 1) {
                to = std::copy_n(channel + run.offset + low, high - low, to);
            } else {
                for (int64_t at = low; at < high; ++at) *to++ = channel[run.offset + at * stride];
            }
            to = std::fill_n(to, until - high, T());
            left -= until - from;
            position[last] = 0;
            advance(position, window.positions, last);
        }
        if (!advance(tap, window.kernel, window.rank())) channel += channel_size;
    }
}

}  // namespace vartml::cpu
