// SPDX-License-Identifier: Apache-2.0
// What of a program leads to indices, comparisons or coordinates, which eight bits are too few for.
#pragma once
#include <string>
#include <vector>

#include "lib/graph/graph.h"

namespace vartml::graph {

// What a device that computes in bf16 keeps in f32.
struct Coordinates {
    std::vector<bool> values;          // per value
    std::vector<bool> products;        // per node: a convolution or matrix product
    std::vector<std::string> reasons;  // "TopK 'topk_3'", in the order of the program
    size_t num_values() const;
};

// Backwards from
// - what decides: TopK, ArgMax, ArgMin, NonMaxSuppression, NonZero, comparisons (but with 0, which
//   rounding keeps), conversions to integers and what rounds to them;
// - places: grids of GridSample, offsets of DeformConv, regions of RoiAlign, angles of Sin and Cos,
//   sums of CumSum;
// - arithmetic with a constant that counts evenly (a grid of pixels, the bins of a distribution),
// and
//   what moves, scales and joins its result;
// to the next convolution or matrix product, whose result is kept. Only small products on the way
// (1/1000 of the multiply-adds each, 1/100 together) multiply in f32 themselves, such as the
// expectation over the bins of a box's side. What other products read too is kept as long as it is
// little (1/20 of the elements of all tensors together), since it is converted for those: the speed
// of a network does not change by more. A function of the graph alone.
Coordinates find_coordinates(const Graph& graph);

}  // namespace vartml::graph
