// SPDX-License-Identifier: Apache-2.0
#include "lib/graph/evaluate.h"

#include <algorithm>

#include "lib/graph/evaluate_rules.h"

namespace vartml::graph {

namespace {

const Evaluator* find_evaluator(std::string_view kind) {
    for (const auto& rows : {arithmetic_evaluators(), movement_evaluators()}) {
        const auto found = std::ranges::find(rows, kind, &Evaluator::kind);
        if (found != rows.end()) return &*found;
    }
    return nullptr;
}

}  // namespace

bool can_evaluate(std::string_view kind) {
    return find_evaluator(kind) != nullptr;
}

Result<std::vector<Constant>> evaluate(const Graph& graph, const Node& node) {
    const Evaluator* evaluator = find_evaluator(node.kind);
    if (!evaluator) {
        return Error{ErrorCode::unsupported,
                     "node '" + node.name + "' uses " + node.kind + ", which cannot be folded"};
    }
    try {
        return evaluator->evaluate(graph, node);
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::out_of_memory, "node '" + node.name + "' (" + node.kind +
                                                   ") makes a constant too large for the memory"};
    }
}

std::vector<int64_t> strides_of(std::span<const int64_t> shape) {
    std::vector<int64_t> strides(shape.size());
    int64_t stride = 1;
    for (size_t i = shape.size(); i-- > 0;) {
        strides[i] = stride;
        stride *= shape[i];
    }
    return strides;
}

std::vector<int64_t> broadcast_strides(std::span<const int64_t> from,
                                       std::span<const int64_t> shape) {
    const auto dense = strides_of(from);
    std::vector<int64_t> strides(shape.size(), 0);
    const size_t shift = shape.size() - from.size();
    for (size_t i = 0; i < from.size(); ++i) strides[shift + i] = from[i] == 1 ? 0 : dense[i];
    return strides;
}

void Walk::next() {
    for (size_t axis = shape_.size(); axis-- > 0;) {
        const bool wraps = ++index_[axis] == shape_[axis];
        for (size_t set = 0; set < strides_.size(); ++set) {
            offsets_[set] += strides_[set][axis] * (wraps ? 1 - shape_[axis] : 1);
        }
        if (!wraps) return;
        index_[axis] = 0;
    }
}

}  // namespace vartml::graph
