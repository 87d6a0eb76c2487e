// SPDX-License-Identifier: Apache-2.0
// Operators that look elements up by index or sort them.
#include <algorithm>

#include "lib/graph/ops.h"

namespace vartml::graph {

namespace {

using Ints = std::vector<int64_t>;

Error bad_inputs(const Graph& graph, const Node& node) {
    std::string list;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (!list.empty()) list += ", ";
        list += has_input(node, i) ? to_string(input_type(graph, node, i)) : "nothing";
    }
    return bad_node(node, "has the inputs " + list + ", which do not go together");
}

bool are_indices(const Type& type) {
    return type.data_type == DataType::int64 || type.data_type == DataType::int32;
}

// Whether the shapes of the inputs are those of every run: only these can be compared.
bool has_fixed_shapes(const Graph& graph, const Node& node) {
    return std::ranges::none_of(
        node.inputs, [&](ValueId id) { return id != none && graph.value(id).data_dependent; });
}

Result<Types> infer_gather(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &indices = input_type(graph, node, 1);
    const int64_t axis = wrap_axis(node.get("axis", int64_t{0}), x.shape.size());
    if (axis < 0 || !are_indices(indices)) return bad_inputs(graph, node);
    Type y{x.data_type, Ints(x.shape.begin(), x.shape.begin() + axis)};
    y.shape.insert(y.shape.end(), indices.shape.begin(), indices.shape.end());
    y.shape.insert(y.shape.end(), x.shape.begin() + axis + 1, x.shape.end());
    return Types{y};
}

// Data and indices of one rank; beside `axis`, the data has an element for every index.
bool fits_along_axis(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &indices = input_type(graph, node, 1);
    const int64_t axis = wrap_axis(node.get("axis", int64_t{0}), x.shape.size());
    bool fits = x.shape.size() == indices.shape.size() && axis >= 0 && are_indices(indices);
    for (size_t i = 0; fits && i < x.shape.size() && has_fixed_shapes(graph, node); ++i)
        fits = static_cast<int64_t>(i) == axis || indices.shape[i] <= x.shape[i];
    return fits;
}

Result<Types> infer_gather_elements(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &indices = input_type(graph, node, 1);
    if (!fits_along_axis(graph, node)) return bad_inputs(graph, node);
    return Types{{x.data_type, indices.shape}};
}

Result<Types> infer_gather_nd(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &indices = input_type(graph, node, 1);
    const int64_t batch = node.get("batch_dims", int64_t{0});
    if (indices.shape.empty() || batch < 0 || batch >= static_cast<int64_t>(indices.shape.size()) ||
        !are_indices(indices)) {
        return bad_inputs(graph, node);
    }
    const int64_t depth = indices.shape.back() + batch;
    if (depth > static_cast<int64_t>(x.shape.size()) || depth < batch)
        return bad_inputs(graph, node);
    Type y{x.data_type, Ints(indices.shape.begin(), indices.shape.end() - 1)};
    y.shape.insert(y.shape.end(), x.shape.begin() + depth, x.shape.end());
    return Types{y};
}

Result<Types> infer_scatter_elements(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &updates = input_type(graph, node, 2);
    const bool same = updates.shape == input_type(graph, node, 1).shape;
    if (!fits_along_axis(graph, node) || updates.data_type != x.data_type ||
        (!same && has_fixed_shapes(graph, node))) {
        return bad_inputs(graph, node);
    }
    return Types{x};
}

// The indices list places along the leading axes of the data, the updates what goes there.
Result<Types> infer_scatter_nd(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &indices = input_type(graph, node, 1),
               &updates = input_type(graph, node, 2);
    if (indices.shape.empty() || !are_indices(indices) || updates.data_type != x.data_type ||
        indices.shape.back() > static_cast<int64_t>(x.shape.size())) {
        return bad_inputs(graph, node);
    }
    Ints expected(indices.shape.begin(), indices.shape.end() - 1);
    expected.insert(expected.end(), x.shape.begin() + indices.shape.back(), x.shape.end());
    if (updates.shape != expected && has_fixed_shapes(graph, node)) return bad_inputs(graph, node);
    return Types{x};
}

Result<Types> infer_reverse_sequence(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &lengths = input_type(graph, node, 1);
    const int64_t batch = node.get("batch_axis", int64_t{1}),
                  time = node.get("time_axis", int64_t{0});
    const bool axes_fit = std::min(batch, time) == 0 && std::max(batch, time) == 1;
    if (!axes_fit || x.shape.size() < 2 || lengths.shape.size() != 1 || !are_indices(lengths) ||
        (lengths.shape[0] != x.shape[static_cast<size_t>(batch)] &&
         has_fixed_shapes(graph, node))) {
        return bad_inputs(graph, node);
    }
    return Types{x};
}

Result<Types> infer_trilu(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    if (x.shape.size() < 2) return bad_inputs(graph, node);
    return Types{x};
}

Result<Types> infer_top_k(const Graph& graph, const Node& node) {
    Type y = input_type(graph, node, 0);
    const int64_t axis = wrap_axis(node.get("axis", int64_t{-1}), y.shape.size());
    if (axis < 0) return bad_inputs(graph, node);
    int64_t& size = y.shape[static_cast<size_t>(axis)];
    if (node.inputs.size() == 1) {  // else an upper bound: all
        const int64_t k = node.get("k", int64_t{-1});
        if (k < 0 || k > size) {
            return bad_node(
                node, "takes " + std::to_string(k) + " of " + std::to_string(size) + " elements");
        }
        size = k;
    }
    return Types{y, {DataType::int64, y.shape}};
}

Result<Types> infer_one_hot(const Graph& graph, const Node& node) {
    Type y{input_type(graph, node, 1).data_type, input_type(graph, node, 0).shape};
    const int64_t axis = wrap_axis(node.get("axis", int64_t{-1}), y.shape.size() + 1);
    const int64_t depth = node.get("depth", int64_t{-1});
    if (axis < 0 || depth < 0 || node.inputs.size() != 2) {
        return bad_node(node, "has the depth " + std::to_string(depth) +
                                  ", expected a constant of at least 0 and an axis of the output");
    }
    y.shape.insert(y.shape.begin() + axis, depth);
    return Types{y};
}

Result<Types> infer_non_zero(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    return Types{{DataType::int64, {static_cast<int64_t>(x.shape.size()), x.elements()}}};
}

Result<Types> infer_compress(const Graph& graph, const Node& node) {
    Type y = input_type(graph, node, 0);
    const int64_t selected = input_type(graph, node, 1).elements();
    if (input_type(graph, node, 1).data_type != DataType::boolean) return bad_inputs(graph, node);
    if (!node.has("axis")) return Types{{y.data_type, {std::min(selected, y.elements())}}};
    const int64_t axis = wrap_axis(node.get("axis", int64_t{0}), y.shape.size());
    if (axis < 0) return bad_inputs(graph, node);
    int64_t& size = y.shape[static_cast<size_t>(axis)];
    size = std::min(size, selected);
    return Types{y};
}

Result<Types> infer_unique(const Graph& graph, const Node& node) {
    Type y = input_type(graph, node, 0);
    int64_t size = y.elements();
    if (node.has("axis")) {
        const int64_t axis = wrap_axis(node.get("axis", int64_t{0}), y.shape.size());
        if (axis < 0) return bad_inputs(graph, node);
        size = y.shape[static_cast<size_t>(axis)];
    } else {
        y.shape = {size};
    }
    const Type list{DataType::int64, {size}};
    return Types{y, list, list, list};
}

Result<Types> infer_nms(const Graph& graph, const Node& node) {
    const auto &boxes = input_type(graph, node, 0).shape,
               &scores = input_type(graph, node, 1).shape;
    if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != 4 || boxes[0] != scores[0] ||
        boxes[1] != scores[2]) {
        return bad_inputs(graph, node);
    }
    int64_t most = boxes[1];  // a limit that is no constant bounds nothing
    if (node.inputs.size() == 2) {
        most = std::clamp<int64_t>(node.get("max_output_boxes_per_class", int64_t{0}), 0, most);
    }
    return Types{{DataType::int64, {scores[0] * scores[1] * most, 3}}};
}

Result<Types> infer_eye_like(const Graph& graph, const Node& node) {
    Type y = input_type(graph, node, 0);
    if (y.shape.size() != 2) return bad_inputs(graph, node);
    const std::string name = node.get("dtype", "");
    if (const auto type = parse_short_name(name))
        y.data_type = *type;
    else if (!name.empty())
        return bad_node(node, "makes '" + name + "', expected a type such as f32 or i64");
    return Types{y};
}

Result<Types> infer_det(const Graph& graph, const Node& node) {
    Type y = input_type(graph, node, 0);
    const size_t rank = y.shape.size();
    if (rank < 2 || y.shape[rank - 1] != y.shape[rank - 2]) return bad_inputs(graph, node);
    y.shape.resize(rank - 2);
    return Types{y};
}

constexpr OpInfo ops[] = {
    {"Gather", 2, 2, 1, 1, "axis:i", infer_gather, count_none},
    {"GatherElements", 2, 2, 1, 1, "axis:i", infer_gather_elements, count_none},
    {"GatherND", 2, 2, 1, 1, "batch_dims:i", infer_gather_nd, count_none},
    {"ScatterElements", 3, 3, 1, 1, "axis:i reduction:s", infer_scatter_elements, count_none},
    {"ScatterND", 3, 3, 1, 1, "reduction:s", infer_scatter_nd, count_none},
    {"TopK", 1, 2, 1, 2, "axis:i k:i largest:i sorted:i", infer_top_k, count_none},
    {"OneHot", 2, 3, 1, 1, "axis:i depth:i", infer_one_hot, count_none},
    {"NonZero", 1, 1, 1, 1, "", infer_non_zero, count_none},
    {"Compress", 2, 2, 1, 1, "axis:i", infer_compress, count_none},
    {"Unique", 1, 1, 1, 4, "axis:i sorted:i", infer_unique, count_none},
    {"NonMaxSuppression", 2, 5, 1, 1,
     "center_point_box:i iou_threshold:f max_output_boxes_per_class:i score_threshold:f", infer_nms,
     count_none},
    {"EyeLike", 1, 1, 1, 1, "dtype:s k:i", infer_eye_like, count_none},
    {"Trilu", 1, 2, 1, 1, "k:i upper:i", infer_trilu, count_none},
    {"Det", 1, 1, 1, 1, "", infer_det, count_none},
    {"ReverseSequence", 2, 2, 1, 1, "batch_axis:i time_axis:i", infer_reverse_sequence, count_none},
};

}  // namespace

std::span<const OpInfo> index_ops() {
    return ops;
}

}  // namespace vartml::graph
