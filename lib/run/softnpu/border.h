// SPDX-License-Identifier: Apache-2.0
// The bytes that a caller hands over, seen in the logical dimensions of the graph.
#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "lib/run/softnpu/plan.h"
#include "lib/run/softnpu/view.h"

namespace vartml::softnpu {

// Cuts the work of a primitive into pieces for several threads.

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

// The HW view of a border tensor as a view of `buffer` in the logical shape; nullopt where strides
// cannot say it: blocked channels in more than one group.
std::optional<View> border_view(const TensorInfo& info, const Dims& shape, int32_t buffer);

// Memory order that suits the HW view of a border tensor.
Order border_order(const TensorInfo& info);

// For blocked layouts of several groups: pairs of equal dims {part of the border buffer, part of
// `inside`} that cover all elements; `inside` is any view in the logical shape.
std::vector<std::pair<View, View>> border_parts(const TensorInfo& info, const View& inside,
                                                int32_t buffer);

// The padding elements of a HW view: channels beyond C in the last group, columns beyond the last
// of NHW.
std::vector<View> border_padding(const TensorInfo& info, const Dims& shape, int32_t buffer);

// If `view` is a picture with up to 16 channels in a block of 4, 8 or 16 (HCWNC4, HCWNC8, HCWNC16
// with one group), the same picture with the padding channels counted in; else nullopt.
std::optional<View> with_padding_channels(const View& view);

}  // namespace vartml::softnpu
