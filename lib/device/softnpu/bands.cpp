// SPDX-License-Identifier: Apache-2.0
#include "lib/device/softnpu/bands.h"

#include <algorithm>

namespace vartml::softnpu {

std::vector<Range> ranges(int64_t size, uint32_t items) {
    std::vector<Range> result;
    for (int64_t i = 0; i < items; ++i) {
        const auto [first, last] = device::part_of(size, i, items);
        if (first < last) result.push_back({first, last - first});
    }
    return result;
}

View cut(const View& view, size_t dim, const Range& range) {
    if (view.dims[dim] == 1) return view;
    return slice(view, dim, range.first, range.size, 1);
}

std::vector<Band> bands(const Dims& picture, int64_t cost_ns, unsigned threads) {
    const int64_t images = picture[0], rows = picture[2];
    const uint32_t items = items_for({images * rows, cost_ns}, threads);
    std::vector<Band> result;
    if (items <= images) {
        for (const Range& r : ranges(images, items)) result.push_back({r, {0, rows}});
        return result;
    }
    const auto per_image = static_cast<uint32_t>((items + images - 1) / images);
    for (int64_t n = 0; n < images; ++n) {
        for (const Range& r : ranges(rows, per_image)) result.push_back({{n, 1}, r});
    }
    return result;
}

View cut(const View& view, const Band& band) {
    return cut(cut(view, 0, band.images), 2, band.rows);
}

}  // namespace vartml::softnpu
