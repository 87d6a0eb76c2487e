// SPDX-License-Identifier: Apache-2.0
// Loop nests over views.
#include "lib/run/softnpu/loops.h"

#include <algorithm>
#include <cassert>

namespace vartml::softnpu {

std::vector<Loop> make_loops(std::initializer_list<const View*> views) {
    const Dims& dims = (*views.begin())->dims;
    std::vector<Loop> loops;
    for (size_t d = 0; d < dims.size(); ++d) {
        if (dims[d] == 1) continue;
        Loop loop{dims[d], {}};
        size_t operand = 0;
        for (const View* view : views) {
            assert(view->dims == dims);
            loop.strides[operand++] = view->strides[d];
        }
        loops.push_back(loop);
    }
    std::ranges::stable_sort(
        loops, [](const Loop& a, const Loop& b) { return a.strides[0] > b.strides[0]; });
    for (size_t i = 1; i < loops.size();) {
        Loop& a = loops[i - 1];
        const Loop& b = loops[i];
        bool one = true;
        for (size_t k = 0; k < max_operands; ++k) {
            one = one && a.strides[k] == b.strides[k] * b.size;
        }
        if (one) {
            a = {a.size * b.size, b.strides};
            loops.erase(loops.begin() + static_cast<ptrdiff_t>(i));
        } else {
            ++i;
        }
    }
    return loops;
}

Loop take_loop(std::vector<Loop>& loops, size_t index) {
    if (loops.empty()) return {};
    const Loop loop = loops[index];
    loops.erase(loops.begin() + static_cast<ptrdiff_t>(index));
    return loop;
}

int64_t iterations(const std::vector<Loop>& loops) {
    int64_t n = 1;
    for (const Loop& loop : loops) n *= loop.size;
    return n;
}

Odometer::Odometer(const std::vector<Loop>& loops, int64_t index) : loops_(loops) {
    for (size_t i = loops.size(); i-- > 0;) {
        at_[i] = index % loops[i].size;
        index /= loops[i].size;
        for (size_t k = 0; k < max_operands; ++k) offsets_[k] += at_[i] * loops[i].strides[k];
    }
}

void Odometer::next() {
    for (size_t i = loops_.size(); i-- > 0;) {
        const Loop& loop = loops_[i];
        for (size_t k = 0; k < max_operands; ++k) offsets_[k] += loop.strides[k];
        if (++at_[i] < loop.size) return;
        for (size_t k = 0; k < max_operands; ++k) offsets_[k] -= loop.size * loop.strides[k];
        at_[i] = 0;
    }
}

}  // namespace vartml::softnpu
