// SPDX-License-Identifier: Apache-2.0
// Operators that only move elements: bytes of the element's size, whatever its type.
#include <algorithm>
#include <cstring>

#include "lib/graph/evaluate_rules.h"
#include "lib/graph/numbers.h"
#include "lib/graph/op_rules.h"

namespace vartml::graph {

namespace {

using Constants = std::vector<Constant>;
using Ints = std::vector<int64_t>;

// Per axis of the output: the offset in elements that each index adds to the source, or -1 for the
// fill value.
using Offsets = std::vector<Ints>;

Constant move_elements(const Value& x, const Type& y, const Offsets& offsets,
                       std::span<const std::byte> fill = {}) {
    const size_t size = vartml::size_bytes(y.data_type);
    std::vector<std::byte> bytes(y.size_bytes());
    Walk walk(y.shape, {});
    for (size_t at = 0; at < bytes.size(); at += size) {
        int64_t source = 0;
        for (size_t axis = 0; axis < offsets.size() && source >= 0; ++axis) {
            const int64_t offset = offsets[axis][static_cast<size_t>(walk.index()[axis])];
            source = offset < 0 ? -1 : source + offset;
        }
        const std::byte* from = source < 0
                                    ? fill.data()
                                    : x.constant->bytes.data() + static_cast<size_t>(source) * size;
        std::memcpy(bytes.data() + at, from, size);
        walk.next();
    }
    return make_constant(std::move(bytes));
}

// Offsets of the elements first, first + step, … along an axis of that stride.
Ints series(int64_t first, int64_t step, int64_t count, int64_t stride) {
    Ints offsets(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
        offsets[static_cast<size_t>(i)] = (first + i * step) * stride;
    return offsets;
}

Offsets whole(const Ints& shape) {
    const auto strides = strides_of(shape);
    Offsets offsets;
    for (size_t i = 0; i < shape.size(); ++i) offsets.push_back(series(0, 1, shape[i], strides[i]));
    return offsets;
}

Result<Constants> evaluate_reshape(const Graph& graph, const Node& node) {
    return Constants{*graph.value(node.inputs[0]).constant};
}

Constant transposed(const Value& x, const Ints& shape, const Ints& perm) {
    const auto strides = strides_of(shape);
    Offsets offsets;
    Type y{x.type.data_type, {}};
    for (const int64_t axis : perm) {
        const auto a = static_cast<size_t>(axis);
        y.shape.push_back(shape[a]);
        offsets.push_back(series(0, 1, shape[a], strides[a]));
    }
    return move_elements(x, y, offsets);
}

Result<Constants> evaluate_transpose(const Graph& graph, const Node& node) {
    const Value& x = graph.value(node.inputs[0]);
    return Constants{transposed(x, x.type.shape, node.get("perm", Ints()))};
}

Result<Constants> evaluate_slice(const Graph& graph, const Node& node) {
    const Value& x = graph.value(node.inputs[0]);
    const Type& y = output_type(graph, node);
    const auto axes = node.get("axes", Ints()), starts = node.get("starts", Ints());
    const auto steps = node.get("steps", Ints(axes.size(), 1));
    const auto strides = strides_of(x.type.shape);
    Offsets offsets = whole(x.type.shape);
    for (size_t i = 0; i < axes.size(); ++i) {
        const auto axis = static_cast<size_t>(axes[i]);
        offsets[axis] = series(starts[i], steps[i], y.shape[axis], strides[axis]);
    }
    return Constants{move_elements(x, y, offsets)};
}

Result<Constants> evaluate_split(const Graph& graph, const Node& node) {
    const Value& x = graph.value(node.inputs[0]);
    const auto axis =
        static_cast<size_t>(wrap_axis(node.get("axis", int64_t{0}), x.type.shape.size()));
    const auto strides = strides_of(x.type.shape);
    Offsets offsets = whole(x.type.shape);
    Constants parts;
    int64_t start = 0;
    for (const int64_t size : node.get("split", Ints())) {
        Type y = x.type;
        y.shape[axis] = size;
        offsets[axis] = series(start, 1, size, strides[axis]);
        parts.push_back(move_elements(x, y, offsets));
        start += size;
    }
    return parts;
}

Result<Constants> evaluate_concat(const Graph& graph, const Node& node) {
    const Type& y = output_type(graph, node);
    const auto axis = static_cast<size_t>(wrap_axis(node.get("axis", int64_t{0}), y.shape.size()));
    const auto run_bytes = [&](const Type& type) {
        size_t bytes = vartml::size_bytes(type.data_type);
        for (size_t i = axis; i < type.shape.size(); ++i)
            bytes *= static_cast<size_t>(type.shape[i]);
        return bytes;
    };
    std::vector<std::byte> bytes(y.size_bytes());
    const size_t row = run_bytes(y), rows = row ? bytes.size() / row : 0;
    size_t start = 0;
    for (const ValueId id : node.inputs) {
        const Value& x = graph.value(id);
        const size_t run = run_bytes(x.type);
        for (size_t i = 0; i < rows && run; ++i) {
            std::memcpy(bytes.data() + i * row + start, x.constant->bytes.data() + i * run, run);
        }
        start += run;
    }
    return Constants{make_constant(std::move(bytes))};
}

Result<Constants> evaluate_expand(const Graph& graph, const Node& node) {
    const Value& x = graph.value(node.inputs[0]);
    const Type& y = output_type(graph, node);
    const auto strides = broadcast_strides(x.type.shape, y.shape);
    Offsets offsets;
    for (size_t i = 0; i < y.shape.size(); ++i)
        offsets.push_back(series(0, 1, y.shape[i], strides[i]));
    return Constants{move_elements(x, y, offsets)};
}

Result<Constants> evaluate_tile(const Graph& graph, const Node& node) {
    const Value& x = graph.value(node.inputs[0]);
    const Type& y = output_type(graph, node);
    const auto strides = strides_of(x.type.shape);
    Offsets offsets(y.shape.size());
    for (size_t axis = 0; axis < y.shape.size(); ++axis) {
        for (int64_t i = 0; i < y.shape[axis]; ++i)
            offsets[axis].push_back(i % x.type.shape[axis] * strides[axis]);
    }
    return Constants{move_elements(x, y, offsets)};
}

// Source index of a padded position, -1 for the fill value.
int64_t padded_index(int64_t at, int64_t size, const std::string& mode) {
    if (at >= 0 && at < size) return at;
    if (size == 0 || mode == "constant") return -1;
    if (mode == "edge") return at < 0 ? 0 : size - 1;
    if (mode == "wrap") return ((at % size) + size) % size;
    if (size == 1) return 0;
    const int64_t period = 2 * (size - 1), phase = ((at % period) + period) % period;  // reflect
    return phase < size ? phase : period - phase;
}

Result<Constants> evaluate_pad(const Graph& graph, const Node& node) {
    const Value& x = graph.value(node.inputs[0]);
    const Type& y = output_type(graph, node);
    const auto pads = node.get("pads", Ints());
    const auto strides = strides_of(x.type.shape);
    const std::string mode = node.get("mode", "constant");
    const float value[] = {node.get("value", 0.0F)};
    const Constant fill = write_numbers<float>(y.data_type, value);
    Offsets offsets(y.shape.size());
    for (size_t axis = 0; axis < y.shape.size(); ++axis) {
        for (int64_t i = 0; i < y.shape[axis]; ++i) {
            const int64_t from = padded_index(i - pads[axis], x.type.shape[axis], mode);
            offsets[axis].push_back(from < 0 ? -1 : from * strides[axis]);
        }
    }
    return Constants{move_elements(x, y, offsets, fill.bytes)};
}

Result<Constants> evaluate_gather(const Graph& graph, const Node& node) {
    const Value &x = graph.value(node.inputs[0]), &indices = graph.value(node.inputs[1]);
    const auto axis =
        static_cast<size_t>(wrap_axis(node.get("axis", int64_t{0}), x.type.shape.size()));
    const auto strides = strides_of(x.type.shape);
    const int64_t size = x.type.shape[axis];
    // The indices as one axis, which does not move any element.
    Type y{x.type.data_type, x.type.shape};
    y.shape[axis] = indices.type.elements();
    Offsets offsets = whole(x.type.shape);
    offsets[axis].clear();
    for (int64_t index : read_numbers<int64_t>(indices)) {
        if (index < -size || index >= size) {
            return bad_node(
                node, "takes element " + std::to_string(index) + " of " + std::to_string(size));
        }
        offsets[axis].push_back((index < 0 ? index + size : index) * strides[axis]);
    }
    return Constants{move_elements(x, y, offsets)};
}

// A view of rank 6, transposed.
Result<Constants> evaluate_depth_to_space(const Graph& graph, const Node& node) {
    const Value& x = graph.value(node.inputs[0]);
    const Ints& s = x.type.shape;
    const int64_t b = node.get("blocksize", int64_t{1}), c = s[1] / (b * b);
    if (node.get("mode", "DCR") == "CRD") {
        return Constants{transposed(x, {s[0], c, b, b, s[2], s[3]}, {0, 1, 4, 2, 5, 3})};
    }
    return Constants{transposed(x, {s[0], b, b, c, s[2], s[3]}, {0, 3, 4, 1, 5, 2})};
}

Result<Constants> evaluate_space_to_depth(const Graph& graph, const Node& node) {
    const Value& x = graph.value(node.inputs[0]);
    const Ints& s = x.type.shape;
    const int64_t b = node.get("blocksize", int64_t{1});
    return Constants{transposed(x, {s[0], s[1], s[2] / b, b, s[3] / b, b}, {0, 3, 5, 1, 2, 4})};
}

Result<Constants> evaluate_where(const Graph& graph, const Node& node) {
    const Type& y = output_type(graph, node);
    std::vector<Ints> strides;
    for (const ValueId id : node.inputs)
        strides.push_back(broadcast_strides(graph.value(id).type.shape, y.shape));
    Walk walk(y.shape, strides);
    const auto condition = graph.value(node.inputs[0]).constant->bytes;
    const size_t size = vartml::size_bytes(y.data_type);
    std::vector<std::byte> bytes(y.size_bytes());
    for (size_t at = 0; at < bytes.size(); at += size) {
        const size_t input = condition[static_cast<size_t>(walk.offset(0))] != std::byte{0} ? 1 : 2;
        const auto from = graph.value(node.inputs[input]).constant->bytes;
        std::memcpy(bytes.data() + at, from.data() + static_cast<size_t>(walk.offset(input)) * size,
                    size);
        walk.next();
    }
    return Constants{make_constant(std::move(bytes))};
}

Result<Constants> evaluate_shape(const Graph& graph, const Node& node) {
    const Ints& shape = input_type(graph, node, 0).shape;
    const auto rank = static_cast<int64_t>(shape.size());
    const int64_t start = node.get("start", int64_t{0}), end = node.get("end", rank);
    const auto count = static_cast<size_t>(std::max<int64_t>(end - start, 0));
    return Constants{make_constant(std::span(shape).subspan(static_cast<size_t>(start), count))};
}

Result<Constants> evaluate_size(const Graph& graph, const Node& node) {
    const int64_t size[] = {input_type(graph, node, 0).elements()};
    return Constants{make_constant(std::span<const int64_t>(size))};
}

Result<Constants> evaluate_constant_of_shape(const Graph& graph, const Node& node) {
    const Type& y = output_type(graph, node);
    const size_t size = vartml::size_bytes(y.data_type);
    std::vector<std::byte> bytes(y.size_bytes());
    if (has_input(node, 1)) {
        const auto value = graph.value(node.inputs[1]).constant->bytes;
        for (size_t at = 0; at < bytes.size(); at += size)
            std::memcpy(bytes.data() + at, value.data(), size);
    }
    return Constants{make_constant(std::move(bytes))};
}

template <typename T>
Constant range(const Graph& graph, const Node& node) {
    const Type& y = output_type(graph, node);
    const T start = read_numbers<T>(graph.value(node.inputs[0]))[0];
    const T delta = read_numbers<T>(graph.value(node.inputs[2]))[0];
    std::vector<T> numbers;
    for (int64_t i = 0; i < y.elements(); ++i) numbers.push_back(start + static_cast<T>(i) * delta);
    return write_numbers<T>(y.data_type, numbers);
}

Result<Constants> evaluate_range(const Graph& graph, const Node& node) {
    if (is_integral(output_type(graph, node).data_type))
        return Constants{range<int64_t>(graph, node)};
    return Constants{range<double>(graph, node)};
}

constexpr Evaluator evaluators[] = {
    {"Concat", evaluate_concat},
    {"ConstantOfShape", evaluate_constant_of_shape},
    {"DepthToSpace", evaluate_depth_to_space},
    {"Expand", evaluate_expand},
    {"Flatten", evaluate_reshape},
    {"Gather", evaluate_gather},
    {"Pad", evaluate_pad},
    {"Range", evaluate_range},
    {"Reshape", evaluate_reshape},
    {"Shape", evaluate_shape},
    {"Size", evaluate_size},
    {"Slice", evaluate_slice},
    {"SpaceToDepth", evaluate_space_to_depth},
    {"Split", evaluate_split},
    {"Squeeze", evaluate_reshape},
    {"Tile", evaluate_tile},
    {"Transpose", evaluate_transpose},
    {"Unsqueeze", evaluate_reshape},
    {"Where", evaluate_where},
};

}  // namespace

std::span<const Evaluator> movement_evaluators() {
    return evaluators;
}

}  // namespace vartml::graph
