// SPDX-License-Identifier: Apache-2.0
// Operators that select or rank elements by value.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "lib/graph/kernel.h"
#include "lib/graph/moves.h"
#include "lib/graph/ops.h"

namespace vartml::graph {
namespace {

using Ints = std::vector<int64_t>;

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

}  // namespace
}  // namespace vartml::graph

namespace vartml::cpu {
namespace {

Result<void> one_hot(const Call& call) {
    const Array &indices = call.inputs[0], &values = call.inputs[1], &y = call.outputs[0];
    if (values.elements() != 2) return bad_data(call, "has values other than one off and one on");
    const AxisView view =
        around_axis(y.shape, static_cast<size_t>(call.node.get("axis", int64_t{0})));
    const auto numbers = read_numbers<int64_t>(indices);
    const size_t width = vartml::size_bytes(y.type);
    copy_elements(y.shape, width, values.data, {}, y.data, strides_of(y.shape));
    for (int64_t i = 0; i < indices.elements(); ++i) {
        int64_t at = numbers[static_cast<size_t>(i)];
        if (at < 0) at += view.size;
        if (at < 0 || at >= view.size) continue;  // all off
        const int64_t outer = i / view.inner, inner = i % view.inner;
        const auto element = static_cast<size_t>((outer * view.size + at) * view.inner + inner);
        std::memcpy(y.data + element * width, values.data + width, width);
    }
    return {};
}

// Gives output `i` its real size along an axis that the type bounds.
Result<void> shrink(const Call& call, size_t i, size_t axis, int64_t size) {
    if (!call.has_output(i)) return {};
    int64_t& bound = call.outputs[i].shape[axis];
    if (size > bound) {
        return bad_data(call, "finds " + std::to_string(size) + " elements for an output of " +
                                  std::to_string(bound));
    }
    bound = size;
    return {};
}

Result<void> non_zero(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    Result<void> done;
    const bool known = graph::with_type(x.type, [&]<typename T>(T) {
        const auto elements = x.span<T>();
        const auto is_set = [](T element) { return number(element) != Number<T>(0); };
        const int64_t count = std::ranges::count_if(elements, is_set);
        done = shrink(call, 0, 1, count);
        if (!done) return;
        Walk<1> walk(x.shape, {});
        int64_t* column = y.as<int64_t>();
        for (const T element : elements) {
            if (is_set(element)) {
                for (size_t axis = 0; axis < x.shape.size(); ++axis)
                    column[static_cast<int64_t>(axis) * count] = walk.index(axis);
                ++column;
            }
            walk.next();
        }
    });
    return known ? done : no_type(call, x.type);
}

Result<void> compress(const Call& call) {
    const Array &x = call.inputs[0], &condition = call.inputs[1], &y = call.outputs[0];
    if (condition.type != DataType::boolean) return no_type(call, condition.type);
    const bool flat = !call.node.has("axis");
    const auto axis = flat ? size_t{0} : static_cast<size_t>(call.node.get("axis", int64_t{0}));
    const AxisView view = flat ? AxisView{1, x.elements(), 1} : around_axis(x.shape, axis);
    const auto flags = condition.span<graph::Bool>();
    std::vector<int64_t> taken;
    for (int64_t i = 0; i < std::min(view.size, condition.elements()); ++i) {
        if (flags[static_cast<size_t>(i)].byte != 0) taken.push_back(i);
    }
    if (auto ok = shrink(call, 0, axis, static_cast<int64_t>(taken.size())); !ok) return ok;
    const size_t run = static_cast<size_t>(view.inner) * vartml::size_bytes(x.type);
    if (run == 0) return {};
    std::byte* dst = y.data;
    for (int64_t outer = 0; outer < view.outer; ++outer) {
        for (const int64_t i : taken) {
            std::memcpy(dst, x.data + static_cast<size_t>(outer * view.size + i) * run, run);
            dst += run;
        }
    }
    return {};
}

// ---- top k
// -------------------------------------------------------------------------------------------------------

// Which of two elements of a row comes first: NaN counts as the largest number, and of equal ones
// the lower index.
template <typename T>
struct Ahead {
    const T* row;
    int64_t stride;
    bool largest;
    bool operator()(int64_t a, int64_t b) const {
        const auto x = number(row[a * stride]), y = number(row[b * stride]);
        if (is_less(x, y)) return !largest;
        if (is_less(y, x)) return largest;
        return a < b;
    }
};

Result<void> top_k(const Call& call) {
    const Array& x = call.inputs[0];
    const auto axis = static_cast<size_t>(call.node.get("axis", int64_t{0}));
    if (axis >= x.shape.size()) return bad_data(call, "has no axis to rank");
    const AxisView view = around_axis(x.shape, axis);
    const bool largest = call.node.get("largest", int64_t{1}) != 0;
    const int64_t k = read_integer(call, 1, call.node.get("k", int64_t{0}));
    if (k < 0 || k > view.size) {
        return bad_data(
            call, "takes " + std::to_string(k) + " of " + std::to_string(view.size) + " elements");
    }
    for (size_t i = 0; i < call.outputs.size(); ++i) {
        if (auto ok = shrink(call, i, axis, k); !ok) return ok;
    }
    std::vector<int64_t> order(static_cast<size_t>(view.size));
    const bool known = graph::with_type(x.type, [&]<typename T>(T) {
        T* const values = call.has_output(0) ? call.outputs[0].as<T>() : nullptr;
        int64_t* const indices = call.has_output(1) ? call.outputs[1].as<int64_t>() : nullptr;
        for (int64_t row = 0; row < view.outer * view.inner; ++row) {
            const int64_t outer = row / view.inner, inner = row % view.inner;
            const T* src = x.as<T>() + outer * view.size * view.inner + inner;
            std::iota(order.begin(), order.end(), 0);
            std::partial_sort(order.begin(), order.begin() + k, order.end(),
                              Ahead<T>{src, view.inner, largest});
            int64_t to = outer * k * view.inner + inner;
            for (int64_t i = 0; i < k; ++i, to += view.inner) {
                const int64_t index = order[static_cast<size_t>(i)];
                if (values) values[to] = src[index * view.inner];
                if (indices) indices[to] = index;
            }
        }
    });
    return known ? Result<void>() : no_type(call, x.type);
}

// ---- unique
// -------------------------------------------------------------------------------------------------------

// Slices along an axis in the order of their elements, all NaN being equal.
template <typename T>
struct SliceOrder {
    const T* data;
    AxisView view;
    // Below, at or above 0 as slice a is less than, equal to or greater than slice b.
    int compare(int64_t a, int64_t b) const {
        for (int64_t outer = 0; outer < view.outer; ++outer) {
            const T* base = data + outer * view.size * view.inner;
            for (int64_t i = 0; i < view.inner; ++i) {
                const auto x = number(base[a * view.inner + i]),
                           y = number(base[b * view.inner + i]);
                if (is_less(x, y)) return -1;
                if (is_less(y, x)) return 1;
            }
        }
        return 0;
    }
};

// Groups of equal slices: the first slice and the number of each, and the group of every slice.
struct Groups {
    std::vector<int64_t> first, counts, of_slice;
};

template <typename T>
Groups group_slices(const SliceOrder<T>& slices, bool sorted) {
    const auto size = static_cast<size_t>(slices.view.size);
    std::vector<int64_t> order(size);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return slices.compare(a, b) < 0; });
    Groups groups;
    groups.of_slice.resize(size);
    for (size_t i = 0; i < size; ++i) {
        if (i == 0 || slices.compare(order[i - 1], order[i]) != 0) {
            groups.first.push_back(order[i]);
            groups.counts.push_back(0);
        }
        ++groups.counts.back();
        groups.of_slice[static_cast<size_t>(order[i])] =
            static_cast<int64_t>(groups.first.size()) - 1;
    }
    if (sorted) return groups;
    // By first appearance.
    std::vector<int64_t> rank(groups.first.size()), place(groups.first.size());
    std::iota(rank.begin(), rank.end(), 0);
    std::ranges::sort(rank, {}, [&](int64_t g) { return groups.first[static_cast<size_t>(g)]; });
    Groups found;
    for (size_t i = 0; i < rank.size(); ++i) {
        const auto group = static_cast<size_t>(rank[i]);
        found.first.push_back(groups.first[group]);
        found.counts.push_back(groups.counts[group]);
        place[group] = static_cast<int64_t>(i);
    }
    for (const int64_t group : groups.of_slice)
        found.of_slice.push_back(place[static_cast<size_t>(group)]);
    return found;
}

Result<void> unique(const Call& call) {
    const Array& x = call.inputs[0];
    const bool flat = !call.node.has("axis");
    const auto axis = flat ? size_t{0} : static_cast<size_t>(call.node.get("axis", int64_t{0}));
    const AxisView view = flat ? AxisView{1, x.elements(), 1} : around_axis(x.shape, axis);
    Groups groups;
    const bool known = graph::with_type(x.type, [&]<typename T>(T) {
        groups =
            group_slices(SliceOrder<T>{x.as<T>(), view}, call.node.get("sorted", int64_t{1}) != 0);
    });
    if (!known) return no_type(call, x.type);
    const auto count = static_cast<int64_t>(groups.first.size());
    if (auto ok = shrink(call, 0, axis, count); !ok) return ok;
    const size_t run = static_cast<size_t>(view.inner) * vartml::size_bytes(x.type);
    if (call.has_output(0) && run > 0) {
        std::byte* dst = call.outputs[0].data;
        for (int64_t outer = 0; outer < view.outer; ++outer) {
            for (const int64_t i : groups.first) {
                std::memcpy(dst, x.data + static_cast<size_t>(outer * view.size + i) * run, run);
                dst += run;
            }
        }
    }
    const std::vector<int64_t>* lists[] = {&groups.first, &groups.of_slice, &groups.counts};
    for (size_t i = 0; i < 3; ++i) {
        if (!call.has_output(i + 1)) continue;
        if (auto ok = shrink(call, i + 1, 0, static_cast<int64_t>(lists[i]->size())); !ok)
            return ok;
        std::ranges::copy(*lists[i], call.outputs[i + 1].as<int64_t>());
    }
    return {};
}

// Suppression of overlapping boxes.

struct Box {
    float left, top, right, bottom;
    float area() const { return (right - left) * (bottom - top); }
};

// given: ONNX operator NonMaxSuppression: [y1, x1, y2, x2] with the corners in any order, or
// [x, y, width, height] around the centre.
Box read_box(const float* p, bool center) {
    if (center) {
        const float x = p[2] / 2, y = p[3] / 2;
        return {p[0] - x, p[1] - y, p[0] + x, p[1] + y};
    }
    return {std::min(p[1], p[3]), std::min(p[0], p[2]), std::max(p[1], p[3]), std::max(p[0], p[2])};
}

bool overlaps(const Box& a, const Box& b, float threshold) {
    const Box common{std::max(a.left, b.left), std::max(a.top, b.top), std::min(a.right, b.right),
                     std::min(a.bottom, b.bottom)};
    if (!(common.right > common.left && common.bottom > common.top)) return false;
    const float shared = common.area(), both = a.area() + b.area() - shared;
    return shared > 0 && both > 0 && shared / both > threshold;
}

struct Limits {
    int64_t most;
    float iou;
    std::optional<float> score;
};

float read_float(const Call& call, size_t i, float fallback) {
    if (!call.has_input(i)) return fallback;
    const auto numbers = read_numbers<float>(call.inputs[i]);
    return numbers.empty() ? fallback : numbers[0];
}

// Thresholds are attributes, or inputs where one of them is no constant.
Limits read_limits(const Call& call) {
    Limits limits{read_integer(call, 2, call.node.get("max_output_boxes_per_class", int64_t{0})),
                  read_float(call, 3, call.node.get("iou_threshold", 0.0F)), std::nullopt};
    if (call.node.has("score_threshold") || call.has_input(4))
        limits.score = read_float(call, 4, call.node.get("score_threshold", 0.0F));
    return limits;
}

// The boxes of one class that stay, by falling score, of equal scores the lower index first.
void select(const std::vector<Box>& boxes, const float* scores, const Limits& limits,
            std::vector<int64_t>& order, std::vector<int64_t>& selected) {
    order.clear();
    selected.clear();
    for (size_t i = 0; i < boxes.size(); ++i) {
        if (!limits.score || scores[i] > *limits.score) order.push_back(static_cast<int64_t>(i));
    }
    // Scores that are NaN come last.
    const auto ahead = [&](int64_t a, int64_t b) {
        const float x = scores[a], y = scores[b];
        return x > y || (is_nan(y) && !is_nan(x));
    };
    std::ranges::stable_sort(order, ahead);
    for (const int64_t i : order) {
        if (static_cast<int64_t>(selected.size()) >= limits.most) return;
        const Box& box = boxes[static_cast<size_t>(i)];
        const bool stays = std::ranges::none_of(selected, [&](int64_t k) {
            return overlaps(box, boxes[static_cast<size_t>(k)], limits.iou);
        });
        if (stays) selected.push_back(i);
    }
}

Result<void> non_max_suppression(const Call& call) {
    const Array &boxes = call.inputs[0], &scores = call.inputs[1];
    Array& y = call.outputs[0];
    for (const Array& x : {boxes, scores}) {
        if (x.type != DataType::float32) return no_type(call, x.type);
    }
    const Shape &b = boxes.shape, &s = scores.shape;
    if (b.size() != 3 || s.size() != 3 || b[2] != 4 || b[0] != s[0] || b[1] != s[2])
        return bad_data(call, "has boxes and scores that do not go together");
    const Limits limits = read_limits(call);
    const bool center = call.node.get("center_point_box", int64_t{0}) != 0;
    const auto count = static_cast<size_t>(b[1]);
    const int64_t room = y.shape[0];
    std::vector<Box> list(count);
    std::vector<int64_t> order, selected;
    int64_t found = 0;
    int64_t* dst = y.as<int64_t>();
    for (int64_t batch = 0; batch < b[0]; ++batch) {
        for (size_t i = 0; i < count; ++i)
            list[i] =
                read_box(boxes.as<float>() + (batch * b[1] + static_cast<int64_t>(i)) * 4, center);
        for (int64_t klass = 0; klass < s[1]; ++klass) {
            select(list, scores.as<float>() + (batch * s[1] + klass) * s[2], limits, order,
                   selected);
            found += static_cast<int64_t>(selected.size());
            if (found > room) return bad_data(call, "selects more boxes than its output holds");
            for (const int64_t box : selected) {
                for (const int64_t number : {batch, klass, box}) *dst++ = number;
            }
        }
    }
    y.shape[0] = found;
    return {};
}

}  // namespace
}  // namespace vartml::cpu

namespace vartml::graph {
namespace {

constexpr OpInfo rows[] = {
    {"TopK", 1, 2, 1, 2, "axis:i=-1 k:i@1 largest:i=1 sorted:i=1", infer_top_k, count_none,
     cpu::top_k, Trait::exact_0},
    {"OneHot", 2, 3, 1, 1, "axis:i=-1 depth:i@1", infer_one_hot, count_none, cpu::one_hot},
    {"NonZero", 1, 1, 1, 1, "", infer_non_zero, count_none, cpu::non_zero,
     Trait::finds_shape | Trait::exact_0},
    {"Compress", 2, 2, 1, 1, "axis:i", infer_compress, count_none, cpu::compress,
     Trait::finds_shape},
    {"Unique", 1, 1, 1, 4, "axis:i sorted:i=1", infer_unique, count_none, cpu::unique,
     Trait::finds_shape | Trait::exact_0},
    {"NonMaxSuppression", 2, 5, 1, 1,
     "center_point_box:i=0 iou_threshold:f@3=0 max_output_boxes_per_class:i@2=0 "
     "score_threshold:f@4",
     infer_nms, count_none, cpu::non_max_suppression,
     Trait::finds_shape | Trait::exact_0 | Trait::exact_1},
};

}  // namespace

std::span<const OpInfo> select_ops() {
    return rows;
}

}  // namespace vartml::graph
