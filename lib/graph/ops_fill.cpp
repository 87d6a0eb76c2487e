// SPDX-License-Identifier: Apache-2.0
// Tensors made of their shape, of few numbers or of parts of another: Shape, Range, Trilu …
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

Result<Types> infer_trilu(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    if (x.shape.size() < 2) return bad_inputs(graph, node);
    return Types{x};
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

}  // namespace
}  // namespace vartml::graph

namespace vartml::cpu {
namespace {

// Shape and Size read no element: the input may have no memory.
Result<void> shape_of(const Call& call) {
    const Shape& shape = call.inputs[0].shape;
    const auto rank = static_cast<int64_t>(shape.size());
    const int64_t start = std::clamp<int64_t>(call.node.get("start", int64_t{0}), 0, rank);
    const int64_t end = std::clamp<int64_t>(call.node.get("end", rank), start, rank);
    std::copy(shape.begin() + start, shape.begin() + end, call.outputs[0].as<int64_t>());
    return {};
}

Result<void> size_of(const Call& call) {
    *call.outputs[0].as<int64_t>() = call.inputs[0].elements();
    return {};
}

Result<void> constant_of_shape(const Call& call) {
    const Array& y = call.outputs[0];
    if (!call.has_input(1) || call.inputs[1].elements() == 0) {
        std::memset(y.data, 0, y.size_bytes());
        return {};
    }
    copy_elements(y.shape, vartml::size_bytes(y.type), call.inputs[1].data, {}, y.data,
                  strides_of(y.shape));
    return {};
}

// Element i is start + i * delta, rounded once; integers wrap.
Result<void> range(const Call& call) {
    const Array& y = call.outputs[0];
    for (const Array& x : call.inputs) {
        if (x.type != y.type || x.elements() != 1)
            return bad_data(call, "has limits other than one number of the output's type each");
    }
    const bool known = graph::with_type(y.type, [&]<typename T>(T) {
        const auto start = number(*call.inputs[0].as<T>()), delta = number(*call.inputs[2].as<T>());
        const auto elements = y.span<T>();
        for (size_t i = 0; i < elements.size(); ++i) {
            if constexpr (std::is_integral_v<T>) {
                elements[i] =
                    static_cast<T>(static_cast<uint64_t>(start) + i * static_cast<uint64_t>(delta));
            } else {
                elements[i] =
                    graph::convert<T>(static_cast<double>(start) +
                                      static_cast<double>(i) * static_cast<double>(delta));
            }
        }
    });
    return known ? Result<void>() : no_type(call, y.type);
}

// The diagonal that `k` names in matrices of this size: any far away is like the next one outside.
int64_t diagonal(int64_t k, const Shape& shape) {
    const int64_t fill_rows = shape[shape.size() - 2], columns = shape[shape.size() - 1];
    return std::clamp<int64_t>(k, -fill_rows - 1, columns + 1);
}

Result<void> trilu(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    if (x.shape.size() < 2) return bad_data(call, "has an input of rank 0 or 1");
    if (y.elements() == 0) return {};
    const int64_t given = read_integer(call, 1, call.node.get("k", int64_t{0}));
    const int64_t k = diagonal(given, x.shape);
    const bool upper = call.node.get("upper", int64_t{1}) != 0;
    const int64_t columns = x.shape.back(), fill_rows = x.shape[x.shape.size() - 2];
    const size_t bytes = vartml::size_bytes(x.type),
                 row_bytes = static_cast<size_t>(columns) * bytes;
    std::memset(y.data, 0, y.size_bytes());
    for (int64_t row = 0; row < x.elements() / columns; ++row) {
        const int64_t edge = row % fill_rows + k;  // the column on the diagonal
        const int64_t first = upper ? std::clamp<int64_t>(edge, 0, columns) : 0;
        const int64_t end = upper ? columns : std::clamp<int64_t>(edge + 1, 0, columns);
        const size_t at = static_cast<size_t>(row) * row_bytes + static_cast<size_t>(first) * bytes;
        std::memcpy(y.data + at, x.data + at, static_cast<size_t>(end - first) * bytes);
    }
    return {};
}

Result<void> eye_like(const Call& call) {
    const Array& y = call.outputs[0];
    std::memset(y.data, 0, y.size_bytes());
    const int64_t k = diagonal(call.node.get("k", int64_t{0}), y.shape);
    const bool known = graph::with_type(y.type, [&]<typename T>(T) {
        T* row = y.as<T>();
        for (int64_t i = 0; i < y.shape[0]; ++i, row += y.shape[1]) {
            if (i + k >= 0 && i + k < y.shape[1]) row[i + k] = graph::convert<T>(1.0F);
        }
    });
    return known ? Result<void>() : no_type(call, y.type);
}

// The middle of the input, or the input in the middle of zeros, along each axis.
Result<void> run_center_crop_pad(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    std::memset(y.data, 0, y.size_bytes());
    const Strides from = strides_of(x.shape), to = strides_of(y.shape);
    Shape common = y.shape;
    int64_t first = 0, target = 0;
    for (size_t i = 0; i < common.size(); ++i) {
        const int64_t more = y.shape[i] - x.shape[i];
        common[i] = std::min(x.shape[i], y.shape[i]);
        first += more < 0 ? -more / 2 * from[i] : 0;
        target += more > 0 ? more / 2 * to[i] : 0;
    }
    if (common.elements() == 0) return {};
    const size_t size = vartml::size_bytes(y.type);
    copy_elements(common, size, x.data + static_cast<size_t>(first) * size, from,
                  y.data + static_cast<size_t>(target) * size, to);
    return {};
}

}  // namespace
}  // namespace vartml::cpu

namespace vartml::graph {
namespace {

constexpr OpInfo rows[] = {
    {"CenterCropPad", 1, 2, 1, 1, "axes:is shape:is@1", infer_center_crop_pad, count_none,
     cpu::run_center_crop_pad, Trait::keeps_rank},
    {"Shape", 1, 1, 1, 1, "end:i start:i", infer_shape_of, count_none, cpu::shape_of},
    {"Size", 1, 1, 1, 1, "", infer_size, count_none, cpu::size_of},
    {"ConstantOfShape", 1, 2, 1, 1, "", infer_constant_of_shape, count_none, cpu::constant_of_shape,
     Trait::sized_by_0},
    {"Range", 3, 3, 1, 1, "", infer_range, count_none, cpu::range, Trait::sized_by_0},
    {"EyeLike", 1, 1, 1, 1, "dtype:s k:i=0", infer_eye_like, count_none, cpu::eye_like},
    {"Trilu", 1, 2, 1, 1, "k:i@1=0 upper:i=1", infer_trilu, count_none, cpu::trilu,
     Trait::keeps_shape},
};

}  // namespace

std::span<const OpInfo> fill_ops() {
    return rows;
}

}  // namespace vartml::graph
