// SPDX-License-Identifier: Apache-2.0
// Operators that only move elements.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "lib/graph/kernel.h"
#include "lib/graph/moves.h"
#include "lib/graph/ops.h"

namespace vartml::graph {
namespace {

using Ints = std::vector<int64_t>;

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
    const bool has_hole = std::ranges::any_of(y.shape, [](int64_t size) { return size < 0; });
    if (has_hole || y.elements() != x.elements()) {
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

}  // namespace
}  // namespace vartml::graph

namespace vartml::cpu {
namespace {

using Ints = std::vector<int64_t>;

size_t element_bytes(const Array& array) {
    return vartml::size_bytes(array.type);
}

std::byte* at_element(const Array& array, int64_t element) {
    return array.data + element * static_cast<int64_t>(element_bytes(array));
}

Result<void> reshape(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    if (x.elements() != y.elements()) {
        return bad_data(call, "makes " + std::to_string(y.elements()) + " elements of " +
                                  std::to_string(x.elements()));
    }
    if (x.elements() > 0) std::memcpy(y.data, x.data, x.size_bytes());
    return {};
}

// Elements of `shape`, in the order of the axes `perm`.
void permute(const Array& x, const Array& y, const Shape& shape, std::span<const int64_t> perm) {
    const Strides dense = strides_of(shape);
    Shape permuted = shape;
    Strides strides{};
    for (size_t i = 0; i < perm.size(); ++i) {
        permuted[i] = shape[static_cast<size_t>(perm[i])];
        strides[i] = dense[static_cast<size_t>(perm[i])];
    }
    copy_elements(permuted, element_bytes(x), x.data, strides, y.data, strides_of(permuted));
}

Result<void> transpose(const Call& call) {
    const Array& x = call.inputs[0];
    permute(x, call.outputs[0], x.shape, call.node.get("perm", Ints()));
    return {};
}

// Views of rank 6, transposed.
Result<void> depth_to_space(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const Shape& s = x.shape;
    const int64_t b = call.node.get("blocksize", int64_t{1}), c = s[1] / (b * b);
    constexpr int64_t columns[] = {0, 1, 4, 2, 5, 3}, depths[] = {0, 3, 4, 1, 5, 2};
    if (call.node.get("mode", "DCR") == "CRD") {
        permute(x, y, {s[0], c, b, b, s[2], s[3]}, columns);
    } else {
        permute(x, y, {s[0], b, b, c, s[2], s[3]}, depths);
    }
    return {};
}

Result<void> space_to_depth(const Call& call) {
    const Array& x = call.inputs[0];
    const Shape& s = x.shape;
    const int64_t b = call.node.get("blocksize", int64_t{1});
    constexpr int64_t perm[] = {0, 3, 5, 1, 2, 4};
    permute(x, call.outputs[0], {s[0], s[1], s[2] / b, b, s[3] / b, b}, perm);
    return {};
}

// ---- slice
// -------------------------------------------------------------------------------------------------------

struct Range {
    int64_t start = 0, step = 1, count = 0;
};

// Elements from `start` on in steps before `end`, both in 0 to size, or -1 to size - 1 going down.
Range make_range(int64_t start, int64_t end, int64_t step, int64_t size) {
    // A longer step takes the same elements.
    step = std::clamp<int64_t>(step, -std::max<int64_t>(size, 1), std::max<int64_t>(size, 1));
    start = std::clamp<int64_t>(start, 0, step > 0 ? size : std::max<int64_t>(size - 1, 0));
    end = std::clamp<int64_t>(end, step > 0 ? 0 : -1, size);
    const int64_t room = step > 0 ? end - start : std::min(start, size - 1) - end;
    return {start, step, room <= 0 ? 0 : (room - 1) / std::abs(step) + 1};
}

// Starts, ends, axes and steps that are inputs count from the end where they are negative.
Result<void> read_ranges(const Call& call, std::vector<Range>& ranges) {
    const Shape& shape = call.inputs[0].shape;
    const Ints starts = read_numbers<int64_t>(call.inputs[1]);
    const Ints ends = call.has_input(2) ? read_numbers<int64_t>(call.inputs[2]) : Ints();
    Ints axes, steps(starts.size(), 1);
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
    if (call.has_input(3)) axes = read_numbers<int64_t>(call.inputs[3]);
    if (call.has_input(4)) steps = read_numbers<int64_t>(call.inputs[4]);
    if (ends.size() != starts.size() || axes.size() != starts.size() ||
        steps.size() != starts.size()) {
        return bad_data(call, "has starts, ends, axes and steps of different lengths");
    }
    const auto rank = static_cast<int64_t>(shape.size());
    for (size_t i = 0; i < axes.size(); ++i) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank || steps[i] == 0) {
            return bad_data(call, "slices axis " + std::to_string(axes[i]) + " of " +
                                      std::to_string(rank) + " with the step " +
                                      std::to_string(steps[i]));
        }
        const int64_t size = shape[static_cast<size_t>(axis)];
        const auto wrap = [size](int64_t at) {
            return at < 0 ? std::max<int64_t>(at + size, -1) : at;
        };
        ranges[static_cast<size_t>(axis)] =
            make_range(wrap(starts[i]), wrap(ends[i]), steps[i], size);
    }
    return {};
}

Result<void> slice(const Call& call) {
    const Array& x = call.inputs[0];
    Array& y = call.outputs[0];
    std::vector<Range> ranges;
    for (const int64_t size : x.shape) ranges.push_back({0, 1, size});
    if (call.inputs.size() > 1) {
        if (auto ok = read_ranges(call, ranges); !ok) return ok;
    } else {
        const Ints axes = call.node.get("axes", Ints()), starts = call.node.get("starts", Ints());
        const Ints ends = call.node.get("ends", Ints()),
                   steps = call.node.get("steps", Ints(axes.size(), 1));
        for (size_t i = 0; i < axes.size(); ++i) {
            const auto axis = static_cast<size_t>(axes[i]);
            ranges[axis] = make_range(starts[i], ends[i], steps[i], x.shape[axis]);
        }
    }
    const Strides dense = strides_of(x.shape);
    Strides strides{};
    int64_t first = 0;
    for (size_t i = 0; i < ranges.size(); ++i) {
        if (ranges[i].count > y.shape[i]) return bad_data(call, "takes more than its output holds");
        y.shape[i] = ranges[i].count;
        strides[i] = dense[i] * ranges[i].step;
        first += dense[i] * ranges[i].start;
    }
    if (y.elements() == 0) return {};
    copy_elements(y.shape, element_bytes(x), at_element(x, first), strides, y.data,
                  strides_of(y.shape));
    return {};
}

// ---- split and concat
// --------------------------------------------------------------------------------------------------------

// Bytes of the whole tensor behind one index of the axes before `axis`.
size_t row_bytes(const Array& array, size_t axis) {
    const AxisView view = around_axis(array.shape, axis);
    return static_cast<size_t>(view.size * view.inner) * element_bytes(array);
}

void copy_rows(const std::byte* src, size_t src_stride, std::byte* dst, size_t dst_stride,
               size_t bytes, int64_t rows) {
    if (bytes == 0) return;
    for (int64_t i = 0; i < rows; ++i, src += src_stride, dst += dst_stride)
        std::memcpy(dst, src, bytes);
}

Result<void> split(const Call& call) {
    const Array& x = call.inputs[0];
    const auto axis = static_cast<size_t>(call.node.get("axis", int64_t{0}));
    const Ints sizes = call.node.get("split", Ints());
    const AxisView view = around_axis(x.shape, axis);
    const size_t row = row_bytes(x, axis);
    const size_t element = static_cast<size_t>(view.inner) * element_bytes(x);
    size_t start = 0;
    for (size_t i = 0; i < call.outputs.size() && i < sizes.size(); ++i) {
        const size_t part = static_cast<size_t>(sizes[i]) * element;
        if (start + part > row) {
            return bad_data(call, "splits off more than the " + std::to_string(view.size) +
                                      " elements of its axis");
        }
        if (call.has_output(i))
            copy_rows(x.data + start, row, call.outputs[i].data, part, part, view.outer);
        start += part;
    }
    return {};
}

Result<void> concat(const Call& call) {
    const Array& y = call.outputs[0];
    const auto axis = static_cast<size_t>(call.node.get("axis", int64_t{0}));
    const size_t row = row_bytes(y, axis);
    const int64_t rows = around_axis(y.shape, axis).outer;
    size_t start = 0;
    for (const Array& x : call.inputs) {
        const size_t part = row_bytes(x, axis);
        if (around_axis(x.shape, axis).outer != rows || start + part > row)
            return bad_data(call, "joins inputs that do not fill its output");
        copy_rows(x.data, part, y.data + start, row, part, rows);
        start += part;
    }
    return {};
}

// ---- repetition and padding
// --------------------------------------------------------------------------------------------------------

Result<void> expand(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    copy_elements(y.shape, element_bytes(x), x.data, broadcast_strides(x.shape, y.shape), y.data,
                  strides_of(y.shape));
    return {};
}

Result<void> tile(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const Strides strides = strides_of(x.shape);
    Offsets offsets(y.shape.size());
    for (size_t axis = 0; axis < offsets.size(); ++axis) {
        for (int64_t i = 0; i < y.shape[axis]; ++i)
            offsets[axis].push_back(i % x.shape[axis] * strides[axis]);
    }
    gather_axes(offsets, x.shape, element_bytes(x), x.data, y.data);
    return {};
}

// given: ONNX operator Pad, the modes other than constant. The position may be outside of the axis,
// which has elements.
int64_t padded_index(int64_t at, int64_t size, std::string_view mode) {
    if (mode == "edge") return std::clamp<int64_t>(at, 0, size - 1);
    const bool wraps = mode == "wrap";
    if (!wraps && size == 1) return 0;
    const int64_t period = wraps ? size : 2 * (size - 1);
    const int64_t phase = ((at % period) + period) % period;
    return phase < size ? phase : period - phase;
}

void pad_with_value(const Call& call, const Ints& pads) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const float value = call.node.get("value", 0.0F);
    graph::with_type(
        y.type, [&]<typename T>(T) { std::ranges::fill(y.span<T>(), graph::convert<T>(value)); });
    const Strides from = strides_of(x.shape), to = strides_of(y.shape);
    Shape kept = x.shape;
    int64_t src = 0, dst = 0;
    for (size_t i = 0; i < kept.size(); ++i) {
        const int64_t skipped = std::max<int64_t>(-pads[i], 0);
        const int64_t added = std::max<int64_t>(pads[i], 0);
        kept[i] = std::max<int64_t>(std::min(x.shape[i] - skipped, y.shape[i] - added), 0);
        src += skipped * from[i];
        dst += added * to[i];
    }
    if (kept.elements() == 0) return;
    copy_elements(kept, element_bytes(x), at_element(x, src), from, at_element(y, dst), to);
}

Result<void> pad(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const Ints pads = call.node.get("pads", Ints());
    const std::string mode = call.node.get("mode", "constant");
    if (y.elements() == 0) return {};
    if (mode == "constant") {
        pad_with_value(call, pads);
        return {};
    }
    const Strides strides = strides_of(x.shape);
    Offsets offsets(y.shape.size());
    for (size_t axis = 0; axis < offsets.size(); ++axis) {
        const int64_t size = x.shape[axis];
        if (size == 0) return bad_data(call, "pads an axis without elements with its elements");
        for (int64_t i = 0; i < y.shape[axis]; ++i)
            offsets[axis].push_back(padded_index(i - pads[axis], size, mode) * strides[axis]);
    }
    gather_axes(offsets, x.shape, element_bytes(x), x.data, y.data);
    return {};
}

}  // namespace
}  // namespace vartml::cpu

namespace vartml::graph {
namespace {

// The same elements in the same order.
constexpr Traits reshaping = Trait::reshapes | Trait::neutral | Trait::carries;

constexpr OpInfo rows[] = {
    {"Reshape", 1, 2, 1, 1, "shape:is@1", infer_reshape, count_none, cpu::reshape,
     reshaping | Trait::follows_shape},
    {"Flatten", 1, 1, 1, 1, "axis:i", infer_flatten, count_none, cpu::reshape, reshaping},
    {"Squeeze", 1, 1, 1, 1, "axes:is*@1", infer_squeeze, count_none, cpu::reshape, reshaping},
    {"Unsqueeze", 1, 1, 1, 1, "axes:is*@1", infer_unsqueeze, count_none, cpu::reshape, reshaping},
    {"Transpose", 1, 1, 1, 1, "perm:is*", infer_transpose, count_none, cpu::transpose,
     Trait::permutes | Trait::carries},
    {"Slice", 1, 5, 1, 1, "axes:is@3 ends:is@2 starts:is@1 steps:is@4", infer_slice, count_none,
     cpu::slice, Trait::picks | Trait::carries | Trait::follows_shape},
    {"Split", 1, 2, 1, -1, "axis:i=0 split:is@1", infer_split, count_none, cpu::split,
     Trait::picks | Trait::neutral | Trait::carries},
    {"Concat", 1, -1, 1, 1, "axis:i*", infer_concat, count_none, cpu::concat,
     Trait::neutral | Trait::carries},
    {"Pad", 1, 4, 1, 1, "axes:is-@3 mode:s=constant|reflect|edge|wrap pads:is@1 value:f@2=0",
     infer_pad, count_none, cpu::pad, Trait::keeps_rank},
    {"Expand", 1, 2, 1, 1, "shape:is@1", infer_expand, count_none, cpu::expand,
     Trait::repeats | Trait::neutral | Trait::carries | Trait::follows_shape},
    {"Tile", 1, 2, 1, 1, "repeats:is@1", infer_tile, count_none, cpu::tile,
     Trait::repeats | Trait::neutral | Trait::keeps_rank},
    {"DepthToSpace", 1, 1, 1, 1, "blocksize:i* mode:s=DCR|CRD", infer_depth_to_space, count_none,
     cpu::depth_to_space, Trait::permutes | Trait::picture_work},
    {"SpaceToDepth", 1, 1, 1, 1, "blocksize:i*", infer_space_to_depth, count_none,
     cpu::space_to_depth, Trait::permutes | Trait::picture_work},
};

}  // namespace

std::span<const OpInfo> movement_ops() {
    return rows;
}

}  // namespace vartml::graph
