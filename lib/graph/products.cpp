// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/products.h"

namespace vartml::cpu {

namespace {

// A block of b of this size stays in the cache while all rows of a pass over it.
constexpr int64_t max_depth = 256, max_columns = 256;

// One row of a block: c[j] += sum over k of a[k] * b[k][j].
template <typename T>
void add_row(int64_t columns, int64_t depth, const T* __restrict a, const T* __restrict b,
             int64_t b_stride, T* __restrict c) {
    T sums[max_columns] = {};
    int64_t k = 0;
    for (; k + 4 <= depth; k += 4) {
        const T a0 = a[k], a1 = a[k + 1], a2 = a[k + 2], a3 = a[k + 3];
        const T* __restrict b0 = b + k * b_stride;
        const T* __restrict b1 = b0 + b_stride;
        const T* __restrict b2 = b1 + b_stride;
        const T* __restrict b3 = b2 + b_stride;
        for (int64_t j = 0; j < columns; ++j)
            sums[j] += (a0 * b0[j] + a1 * b1[j]) + (a2 * b2[j] + a3 * b3[j]);
    }
    for (; k < depth; ++k) {
        const T* __restrict row = b + k * b_stride;
        for (int64_t j = 0; j < columns; ++j) sums[j] += a[k] * row[j];
    }
    for (int64_t j = 0; j < columns; ++j) c[j] += sums[j];
}

// Lanes of their own, which the compiler may put into one register.
template <typename T>
T dot(int64_t depth, const T* a, const T* b) {
    T lanes[8] = {};
    int64_t k = 0;
    for (; k + 8 <= depth; k += 8)
        for (int64_t lane = 0; lane < 8; ++lane) lanes[lane] += a[k + lane] * b[k + lane];
    T sum = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
            ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
    for (; k < depth; ++k) sum += a[k] * b[k];
    return sum;
}

// Few columns: a column of the block is copied, so that both sides of a product lie dense.
template <typename T>
void add_dots(int64_t rows, int64_t columns, int64_t depth, const T* a, int64_t a_stride,
              const T* b, int64_t b_stride, T* c, int64_t c_stride) {
    T column[max_depth];
    for (int64_t j = 0; j < columns; ++j) {
        for (int64_t k = 0; k < depth; ++k) column[k] = b[k * b_stride + j];
        for (int64_t r = 0; r < rows; ++r)
            c[r * c_stride + j] += dot(depth, a + r * a_stride, column);
    }
}

}  // namespace

template <typename T>
void add_product(int64_t rows, int64_t columns, int64_t depth, const T* a, int64_t a_stride,
                 const T* b, int64_t b_stride, T* c, int64_t c_stride) {
    // Many rows read a block of b many times: without gaps it keeps its place in the cache.
    constexpr int64_t many_rows = 16;
    std::vector<T> packed;
    for (int64_t k = 0; k < depth; k += max_depth) {
        const int64_t deep = std::min(max_depth, depth - k);
        if (columns < 4) {
            add_dots(rows, columns, deep, a + k, a_stride, b + k * b_stride, b_stride, c, c_stride);
            continue;
        }
        for (int64_t j = 0; j < columns; j += max_columns) {
            const int64_t wide = std::min(max_columns, columns - j);
            const T* block = b + k * b_stride + j;
            int64_t stride = b_stride;
            if (rows >= many_rows && stride > wide) {
                packed.resize(static_cast<size_t>(max_depth * max_columns));
                for (int64_t i = 0; i < deep; ++i)
                    std::copy_n(block + i * stride, wide, packed.data() + i * wide);
                block = packed.data();
                stride = wide;
            }
            for (int64_t r = 0; r < rows; ++r)
                add_row(wide, deep, a + r * a_stride + k, block, stride, c + r * c_stride + j);
        }
    }
}

template void add_product(int64_t, int64_t, int64_t, const float*, int64_t, const float*, int64_t,
                          float*, int64_t);
template void add_product(int64_t, int64_t, int64_t, const double*, int64_t, const double*, int64_t,
                          double*, int64_t);
template void add_product(int64_t, int64_t, int64_t, const uint32_t*, int64_t, const uint32_t*,
                          int64_t, uint32_t*, int64_t);
template void add_product(int64_t, int64_t, int64_t, const uint64_t*, int64_t, const uint64_t*,
                          int64_t, uint64_t*, int64_t);

}  // namespace vartml::cpu
