// SPDX-License-Identifier: Apache-2.0
// Cuts the work of a primitive into pieces for several threads.
#pragma once
#include <vector>

#include "lib/device/softnpu/plan.h"
#include "lib/device/softnpu/view.h"

namespace vartml::softnpu {

// Part of a dimension.
struct Range {
    int64_t first = 0, size = 0;
};

// `items` ranges that cover [0, size), of equal sizes but for one.
std::vector<Range> ranges(int64_t size, uint32_t items);

// `range` of dimension `dim`; a view that is broadcast along it stays whole.
View cut(const View& view, size_t dim, const Range& range);

// Images and rows of pictures [N, C, H, …]. A band of several images has all their rows, so that
// dense pictures with the channels last give dense bands.
struct Band {
    Range images, rows;
};
std::vector<Band> bands(const Dims& picture, int64_t cost_ns, unsigned threads);
View cut(const View& view, const Band& band);

}  // namespace vartml::softnpu
