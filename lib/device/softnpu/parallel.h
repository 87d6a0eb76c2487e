// SPDX-License-Identifier: Apache-2.0
// Shares a range among the OpenMP team of the calling thread.
#pragma once
#include <omp.h>

#include <cstdint>
#include <utility>

namespace vartml::softnpu {

// Part `i` of `n` of the range [0, size).
inline std::pair<int64_t, int64_t> part_of(int64_t size, int64_t i, int64_t n) {
    return {size * i / n, size * (i + 1) / n};
}

// Calls work(first, last) on disjoint ranges that cover [0, size). `cost` is the work of the whole
// range in elements touched; below about 16 thousand a second thread costs more than it saves.
template <typename Work>
void parallel(int64_t size, int64_t cost, const Work& work) {
    if (cost < 16384 || size < 2 || omp_get_max_threads() == 1) {
        work(int64_t{0}, size);
        return;
    }
#pragma omp parallel
    {
        const auto [first, last] = part_of(size, omp_get_thread_num(), omp_get_num_threads());
        if (first < last) work(first, last);
    }
}

}  // namespace vartml::softnpu
