// SPDX-License-Identifier: Apache-2.0
// Operators that only move elements or read shapes.
#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/graph/ops.h"

namespace vartml::graph {

namespace {

using Ints = std::vector<int64_t>;

Error needs_constant(const Node& node, const char* what) {
    return {
        ErrorCode::unsupported,
        "node '" + node.name + "' (" + node.kind + ") takes its " + what +
            " from a tensor that depends on the input data; export the model with static shapes"};
}

// Elements that start, start + step, … yield before end.
int64_t steps_between(int64_t start, int64_t end, int64_t step) {
    const int64_t room = step > 0 ? end - start : start - end, size = step > 0 ? step : -step;
    return room <= 0 ? 0 : (room - 1) / size + 1;
}

Result<Types> infer_reshape(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    if (!node.has("shape")) return needs_constant(node, "shape");
    Type y{x.data_type, node.get("shape", Ints())};
    int64_t known = 1;
    for (const int64_t size : y.shape) {
        if (size != -1) known = bounded_product(known, size);
    }
    if (const auto hole = std::ranges::find(y.shape, -1); hole != y.shape.end() && known > 0) {
        *hole = x.elements() / known;
    }
    if (!is_reasonable(y) || y.elements() != x.elements()) {
        return bad_node(node, "reshapes " + to_string(x) + " to " + to_string(y.shape) +
                                  ", which has another number of elements");
    }
    return Types{y};
}

Result<Types> infer_flatten(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    const int64_t axis = node.get("axis", int64_t{1});
    if (axis < 0 || axis > static_cast<int64_t>(x.shape.size())) {
        return bad_node(node, "has the axis " + std::to_string(axis) + ", outside of its input " +
                                  to_string(x));
    }
    int64_t outer = 1, inner = 1;
    for (size_t i = 0; i < x.shape.size(); ++i) {
        (static_cast<int64_t>(i) < axis ? outer : inner) *= x.shape[i];
    }
    return Types{{x.data_type, {outer, inner}}};
}

Result<Types> infer_squeeze(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    const auto axes = node.get("axes", Ints());
    Type y{x.data_type, {}};
    for (size_t i = 0; i < x.shape.size(); ++i) {
        if (std::ranges::find(axes, static_cast<int64_t>(i)) == axes.end())
            y.shape.push_back(x.shape[i]);
        else if (x.shape[i] != 1)
            return bad_node(node, "squeezes axis " + std::to_string(i) + " of " + to_string(x) +
                                      ", expected size 1");
    }
    return Types{y};
}

Result<Types> infer_unsqueeze(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    const auto axes = node.get("axes", Ints());
    Type y{x.data_type, Ints(x.shape.size() + axes.size(), 0)};
    for (const int64_t axis : axes) {
        if (axis < 0 || axis >= static_cast<int64_t>(y.shape.size()) ||
            y.shape[static_cast<size_t>(axis)]) {
            return bad_node(node, "unsqueezes axes " + to_string(axes) + " of " + to_string(x) +
                                      ", expected different axes of the output");
        }
        y.shape[static_cast<size_t>(axis)] = 1;
    }
    auto size = x.shape.begin();
    for (int64_t& s : y.shape) {
        if (s == 0) s = *size++;
    }
    return Types{y};
}

Result<Types> infer_transpose(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    const auto perm = node.get("perm", Ints());
    Type y{x.data_type, {}};
    Ints sorted = perm;
    std::ranges::sort(sorted);
    for (size_t i = 0; i < sorted.size(); ++i) {
        if (sorted[i] != static_cast<int64_t>(i)) sorted.clear();
    }
    if (sorted.size() != x.shape.size() || perm.size() != x.shape.size()) {
        return bad_node(node, "permutes " + to_string(x) + " by " + to_string(perm) +
                                  ", expected each axis once");
    }
    for (const int64_t axis : perm) y.shape.push_back(x.shape[static_cast<size_t>(axis)]);
    return Types{y};
}

Result<Types> infer_slice(const Graph& graph, const Node& node) {
    Type y = input_type(graph, node, 0);
    if (node.inputs.size() > 1) return Types{y};  // an upper bound
    const auto starts = node.get("starts", Ints()), ends = node.get("ends", Ints());
    const auto axes = node.get("axes", Ints()), steps = node.get("steps", Ints(axes.size(), 1));
    if (starts.size() != axes.size() || ends.size() != axes.size() || steps.size() != axes.size()) {
        return bad_node(node, "has starts, ends, axes and steps of different lengths");
    }
    for (size_t i = 0; i < axes.size(); ++i) {
        const bool in_order = axes[i] >= 0 && (i == 0 || axes[i] > axes[i - 1]);
        if (!in_order || axes[i] >= static_cast<int64_t>(y.shape.size()) || steps[i] == 0) {
            return bad_node(node, "slices axes " + to_string(axes) + " with steps " +
                                      to_string(steps) + ", expected ascending axes of " +
                                      to_string(y) + " and no step of 0");
        }
        int64_t& size = y.shape[static_cast<size_t>(axes[i])];
        const int64_t low = steps[i] > 0 ? 0 : -1, high = steps[i] > 0 ? size : size - 1;
        if (starts[i] < 0 || starts[i] > std::max<int64_t>(high, 0) || ends[i] < low ||
            ends[i] > size) {
            return bad_node(node, "slices axis " + std::to_string(axes[i]) + " from " +
                                      std::to_string(starts[i]) + " to " + std::to_string(ends[i]) +
                                      ", outside of " + to_string(y));
        }
        size = steps_between(starts[i], ends[i], steps[i]);
    }
    return Types{y};
}

Result<Types> infer_split(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    if (node.inputs.size() > 1) return needs_constant(node, "sizes");
    const int64_t axis = wrap_axis(node.get("axis", int64_t{0}), x.shape.size());
    const auto split = node.get("split", Ints());
    int64_t sum = 0;
    for (const int64_t size : split) sum += size;
    if (axis < 0 || split.size() != node.outputs.size() ||
        sum != x.shape[static_cast<size_t>(axis)] ||
        std::ranges::any_of(split, [](int64_t size) { return size < 0; })) {
        return bad_node(node, "splits axis " + std::to_string(axis) + " of " + to_string(x) +
                                  " into " + to_string(split) + " for " +
                                  std::to_string(node.outputs.size()) + " outputs");
    }
    Types types;
    for (const int64_t size : split) {
        types.push_back(x);
        types.back().shape[static_cast<size_t>(axis)] = size;
    }
    return types;
}

Result<Types> infer_concat(const Graph& graph, const Node& node) {
    Type y = input_type(graph, node, 0);
    const int64_t axis = wrap_axis(node.get("axis", int64_t{0}), y.shape.size());
    if (axis < 0) {
        return bad_node(node, "joins along axis " + std::to_string(node.get("axis", int64_t{0})) +
                                  ", outside of its input " + to_string(y));
    }
    const auto at = static_cast<size_t>(axis);
    for (size_t i = 1; i < node.inputs.size(); ++i) {
        Type other = input_type(graph, node, i);
        if (other.shape.size() == y.shape.size()) {
            const int64_t size = std::exchange(other.shape[at], y.shape[at]);
            if (other == y) {
                y.shape[at] += size;
                continue;
            }
        }
        return bad_node(node, "joins " + to_string(input_type(graph, node, 0)) + " and " +
                                  to_string(input_type(graph, node, i)) + " along axis " +
                                  std::to_string(axis) + ", which do not go together");
    }
    return Types{y};
}

Result<Types> infer_pad(const Graph& graph, const Node& node) {
    Type y = input_type(graph, node, 0);
    const size_t rank = y.shape.size();
    if (!node.has("pads")) return needs_constant(node, "pads");
    const auto pads = node.get("pads", Ints());
    if (pads.size() != 2 * rank) {
        return bad_node(node, "pads " + to_string(y) + " by " + to_string(pads) +
                                  ", expected two numbers per axis");
    }
    for (size_t i = 0; i < rank; ++i) y.shape[i] += pads[i] + pads[rank + i];
    return Types{y};
}

Result<Types> infer_expand(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    if (!node.has("shape")) return needs_constant(node, "shape");
    const auto shape = node.get("shape", Ints());
    if (broadcast(x.shape, shape) != shape) {
        return bad_node(node, "expands " + to_string(x) + " to " + to_string(shape) +
                                  ", to which it does not broadcast");
    }
    return Types{{x.data_type, shape}};
}

Result<Types> infer_tile(const Graph& graph, const Node& node) {
    Type y = input_type(graph, node, 0);
    if (!node.has("repeats")) return needs_constant(node, "repeats");
    const auto repeats = node.get("repeats", Ints());
    if (repeats.size() != y.shape.size()) {
        return bad_node(node, "repeats " + to_string(y) + ' ' + to_string(repeats) +
                                  " times, expected one number per axis");
    }
    for (size_t i = 0; i < repeats.size(); ++i) {
        y.shape[i] = bounded_product(y.shape[i], repeats[i]);
    }
    return Types{y};
}

Result<Types> infer_center_crop_pad(const Graph& graph, const Node& node) {
    Type y = input_type(graph, node, 0);
    if (!node.has("shape")) return needs_constant(node, "shape");
    const Ints shape = node.get("shape", Ints());
    Ints axes = node.get("axes", Ints());
    for (size_t i = 0; !node.has("axes") && i < y.shape.size(); ++i)
        axes.push_back(static_cast<int64_t>(i));
    bool fits = axes.size() == shape.size();
    for (size_t i = 0; fits && i < axes.size(); ++i) {
        const int64_t axis = wrap_axis(axes[i], y.shape.size());
        fits = axis >= 0 && shape[i] >= 0;
        if (fits) y.shape[static_cast<size_t>(axis)] = shape[i];
    }
    if (!fits) {
        return bad_node(node, "crops " + to_string(y) + " along axes " + to_string(axes) + " to " +
                                  to_string(shape) + ", expected one size for each axis");
    }
    return Types{y};
}

Result<Types> infer_depth_to_space(const Graph& graph, const Node& node) {
    Type y = input_type(graph, node, 0);
    const int64_t block = node.get("blocksize", int64_t{0});
    if (y.shape.size() != 4 || block < 1 || block > 65536 || y.shape[1] % (block * block) != 0) {
        return bad_node(node, "moves channels of " + to_string(y) + " into blocks of " +
                                  std::to_string(block) +
                                  ", expected rank 4 and a multiple of the square");
    }
    y.shape = {y.shape[0], y.shape[1] / (block * block), y.shape[2] * block, y.shape[3] * block};
    return Types{y};
}

Result<Types> infer_space_to_depth(const Graph& graph, const Node& node) {
    Type y = input_type(graph, node, 0);
    const int64_t block = node.get("blocksize", int64_t{0});
    if (y.shape.size() != 4 || block < 1 || block > 65536 || y.shape[2] % block != 0 ||
        y.shape[3] % block != 0) {
        return bad_node(node, "moves blocks of " + std::to_string(block) + " of " + to_string(y) +
                                  " into channels, expected rank 4 and height and width multiples");
    }
    y.shape = {y.shape[0], y.shape[1] * block * block, y.shape[2] / block, y.shape[3] / block};
    return Types{y};
}

Result<Types> infer_shape_of(const Graph& graph, const Node& node) {
    const auto rank = static_cast<int64_t>(input_type(graph, node, 0).shape.size());
    const auto clamp = [rank](int64_t at) {
        return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
    };
    const int64_t start = clamp(node.get("start", int64_t{0})), end = clamp(node.get("end", rank));
    return Types{{DataType::int64, {std::max<int64_t>(end - start, 0)}}};
}
Result<Types> infer_size(const Graph&, const Node&) {
    return Types{{DataType::int64, {}}};
}

// The elements of a constant input of one of the numeric types, as double; empty where it is not
// constant.
std::vector<double> constant_numbers(const Graph& graph, const Node& node, size_t index) {
    std::vector<double> numbers;
    const Value& value = graph.value(node.inputs[index]);
    if (!value.constant) return numbers;
    const auto copy = [&](auto values) { numbers.assign(values.begin(), values.end()); };
    switch (value.type.data_type) {
        case DataType::int64:
            copy(value.constant->as<int64_t>());
            break;
        case DataType::int32:
            copy(value.constant->as<int32_t>());
            break;
        case DataType::int16:
            copy(value.constant->as<int16_t>());
            break;
        case DataType::float32:
            copy(value.constant->as<float>());
            break;
        case DataType::float64:
            copy(value.constant->as<double>());
            break;
        default:
            break;
    }
    return numbers;
}

Result<Types> infer_constant_of_shape(const Graph& graph, const Node& node) {
    const Value& shape = graph.value(node.inputs[0]);
    if (!shape.constant || shape.type.data_type != DataType::int64)
        return needs_constant(node, "shape");
    const auto sizes = shape.constant->as<int64_t>();
    const DataType type =
        has_input(node, 1) ? input_type(graph, node, 1).data_type : DataType::float32;
    return Types{{type, Ints(sizes.begin(), sizes.end())}};
}

Result<Types> infer_range(const Graph& graph, const Node& node) {
    double numbers[3];
    for (size_t i = 0; i < 3; ++i) {
        const auto found = constant_numbers(graph, node, i);
        if (found.size() != 1) return needs_constant(node, "limits");
        numbers[i] = found[0];
    }
    const double count = std::ceil((numbers[1] - numbers[0]) / numbers[2]);
    if (!(count < 1e12)) return bad_node(node, "never reaches its limit");
    const int64_t elements = count > 0 ? static_cast<int64_t>(count) : 0;
    return Types{{input_type(graph, node, 0).data_type, {elements}}};
}

constexpr OpInfo ops[] = {
    {"Reshape", 1, 2, 1, 1, "shape:is", infer_reshape, count_none},
    {"Flatten", 1, 1, 1, 1, "axis:i", infer_flatten, count_none},
    {"Squeeze", 1, 1, 1, 1, "axes:is*", infer_squeeze, count_none},
    {"Unsqueeze", 1, 1, 1, 1, "axes:is*", infer_unsqueeze, count_none},
    {"Transpose", 1, 1, 1, 1, "perm:is*", infer_transpose, count_none},
    {"Slice", 1, 5, 1, 1, "axes:is ends:is starts:is steps:is", infer_slice, count_none},
    {"Split", 1, 2, 1, -1, "axis:i split:is", infer_split, count_none},
    {"Concat", 1, -1, 1, 1, "axis:i*", infer_concat, count_none},
    {"Pad", 1, 4, 1, 1, "mode:s pads:is value:f", infer_pad, count_none},
    {"Expand", 1, 2, 1, 1, "shape:is", infer_expand, count_none},
    {"Tile", 1, 2, 1, 1, "repeats:is", infer_tile, count_none},
    {"CenterCropPad", 1, 2, 1, 1, "axes:is shape:is", infer_center_crop_pad, count_none},
    {"DepthToSpace", 1, 1, 1, 1, "blocksize:i* mode:s", infer_depth_to_space, count_none},
    {"SpaceToDepth", 1, 1, 1, 1, "blocksize:i*", infer_space_to_depth, count_none},
    {"Shape", 1, 1, 1, 1, "end:i start:i", infer_shape_of, count_none},
    {"Size", 1, 1, 1, 1, "", infer_size, count_none},
    {"ConstantOfShape", 1, 2, 1, 1, "", infer_constant_of_shape, count_none},
    {"Range", 3, 3, 1, 1, "", infer_range, count_none},
};

}  // namespace

std::span<const OpInfo> movement_ops() {
    return ops;
}

}  // namespace vartml::graph
