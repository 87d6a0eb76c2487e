// SPDX-License-Identifier: Apache-2.0
// What the files of the evaluator share; private to lib/graph.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "lib/graph/graph.h"

namespace vartml::graph {

struct Evaluator {
    std::string_view kind;
    Result<std::vector<Constant>> (*evaluate)(const Graph&, const Node&);
};
std::span<const Evaluator> arithmetic_evaluators();
std::span<const Evaluator> movement_evaluators();

// Elements from one to the next index along each axis, dense row-major.
std::vector<int64_t> strides_of(std::span<const int64_t> shape);
// The same for a tensor that broadcasts to `shape`: 0 along the axes that repeat.
std::vector<int64_t> broadcast_strides(std::span<const int64_t> from,
                                       std::span<const int64_t> shape);

// Walks all indices of a shape in row-major order, keeping the element offset under one or more
// sets of strides.
class Walk {
public:
    explicit Walk(std::span<const int64_t> shape, std::vector<std::vector<int64_t>> strides)
        : shape_(shape.begin(), shape.end()),
          strides_(std::move(strides)),
          index_(shape.size(), 0),
          offsets_(strides_.size(), 0) {}
    int64_t offset(size_t set) const { return offsets_[set]; }
    const std::vector<int64_t>& index() const { return index_; }
    void next();

private:
    std::vector<int64_t> shape_;
    std::vector<std::vector<int64_t>> strides_;
    std::vector<int64_t> index_, offsets_;
};

}  // namespace vartml::graph
