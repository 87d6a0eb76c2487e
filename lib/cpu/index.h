// SPDX-License-Identifier: Apache-2.0
// Where the indices of the gather and scatter operators point; data is input 0, indices input 1.
#pragma once
#include <vector>

#include "lib/cpu/moves.h"

namespace vartml::cpu {

// The data element that each index names along the attribute `axis`, the other axes being those of
// the index itself; `shape` is that of the indices. Errors: bad_model for an index or a shape
// outside of the data.
Result<std::vector<int64_t>> element_places(const Call& call, const Shape& shape);

// Slices of `run` elements, by their first element.
struct SlicePlaces {
    std::vector<int64_t> first;
    int64_t run = 1;
};
// What the tuples along the last axis of the indices name, behind the leading axes that data and
// indices share.
Result<SlicePlaces> slice_places(const Call& call, size_t batch_dims);

}  // namespace vartml::cpu
