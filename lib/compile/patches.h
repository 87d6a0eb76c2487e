// SPDX-License-Identifier: Apache-2.0
// What the sums of a convolution or product are over: patches of its input beside rows of weights.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lib/graph/graph.h"

namespace vartml::compiler {

// The axis of constant weights that is the channel of the output, where a node multiplies something
// that is no constant with them.
std::optional<int64_t> channel_axis(const graph::Graph& graph, const graph::Node& node);

// An element of the result is the sum of products of a patch and a row of weights, one per output.
// Outputs of a group read the same part of a patch.
class Patches {
public:
    // nullopt: no product with constant weights, or none whose patches are known: convolutions of
    // one or two dimensions, products of matrices.
    static std::optional<Patches> create(const graph::Graph& graph, const graph::Node& node);

    size_t groups() const { return groups_; }
    size_t outputs() const { return outputs_; }  // of all groups
    size_t size() const { return size_; }        // of the part of one group; rows are as long

    // The weights as rows [outputs, size], and rows, or none, as the weights lie.
    std::vector<float> rows_of(std::span<const float> weights) const;
    template <typename T>
    std::vector<T> weights_of(std::span<const T> rows) const;

    // Up to `most` patches [patch, groups, size] of an input, spread over it; which ones depends on
    // `sample`. Zero where a patch reaches beyond the input.
    std::vector<float> read(std::span<const float> input, size_t most, size_t sample) const;

private:
    size_t groups_ = 1, outputs_ = 0, size_ = 0;
    bool transposed_ = false;  // weights are [size, outputs]
    // Of an image: channels, height, width; of a matrix: rows of size_.
    bool is_image_ = false;
    int64_t channels_ = 0, height_ = 1, width_ = 1, taps_y_ = 1, taps_x_ = 1;
    int64_t stride_y_ = 1, stride_x_ = 1, step_y_ = 1, step_x_ = 1, top_ = 0, left_ = 0;
    int64_t rows_ = 1, columns_ = 1;  // of the result
};

}  // namespace vartml::compiler
