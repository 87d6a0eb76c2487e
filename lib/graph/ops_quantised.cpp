// SPDX-License-Identifier: Apache-2.0
// Quantise, dequantise and the element-wise QLinear forms; products are in ops_window.cpp and
// ops_matrix.cpp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "lib/graph/ops.h"
#include "lib/graph/ops_window.h"
#include "lib/graph/typed.h"
#include "lib/graph/walk.h"

namespace vartml::graph {
namespace {

// Of QuantizeLinear and DequantizeLinear: one scale for the data, one for each element along an
// axis, or one for each block of elements along it.
bool fits_scales(const Node& node, std::span<const int64_t> data, std::span<const int64_t> scales) {
    if (std::ranges::all_of(scales, [](int64_t size) { return size == 1; })) return true;
    const int64_t axis = node.get("axis", int64_t{1}), block = node.get("block_size", int64_t{0});
    if (axis < 0 || axis >= static_cast<int64_t>(data.size())) return false;
    std::vector<int64_t> expected(data.begin(), data.end());
    int64_t& size = expected[static_cast<size_t>(axis)];
    if (block > 0)
        size = size / block + (size % block != 0);
    else
        expected = {size};
    return std::ranges::equal(scales, expected);
}

// Shapes that the data decide are checked when they are there.
Result<void> check_scales(const Graph& graph, const Node& node) {
    const auto is_open = [&](size_t i) { return graph.value(node.inputs[i]).data_dependent; };
    const Type &data = input_type(graph, node, 0), &scales = input_type(graph, node, 1);
    if (is_open(0) || is_open(1)) return {};
    if (!fits_scales(node, data.shape, scales.shape))
        return bad_node(node, "has scales " + to_string(scales) + " for " + to_string(data) +
                                  ", expected one, one per element of axis " +
                                  std::to_string(node.get("axis", int64_t{1})) +
                                  ", or one per block of it with block_size");
    if (!has_input(node, 2) || is_open(2)) return {};
    const Type& zeros = input_type(graph, node, 2);
    if (zeros.elements() != scales.elements())
        return bad_node(node, "has zero points " + to_string(zeros) + " beside scales " +
                                  to_string(scales) + ", expected as many");
    return {};
}

Result<Types> infer_quantise(const Graph& graph, const Node& node) {
    if (auto fits = check_scales(graph, node); !fits) return fits.error();
    DataType type = DataType::uint8;
    const std::string name = node.get("output_dtype", "");
    if (has_input(node, 2)) {
        type = input_type(graph, node, 2).data_type;
    } else if (const auto named = parse_short_name(name)) {
        type = *named;
    } else if (!name.empty()) {
        return bad_node(node, "makes '" + name + "', expected a type such as u8 or i8");
    }
    return Types{{type, input_type(graph, node, 0).shape}};
}

Result<Types> infer_dequantise(const Graph& graph, const Node& node) {
    if (auto fits = check_scales(graph, node); !fits) return fits.error();
    return Types{{input_type(graph, node, 1).data_type, input_type(graph, node, 0).shape}};
}

// x xs xz ys yz
Result<Types> infer_unary(const Graph& graph, const Node& node) {
    return Types{input_type(graph, node, 0)};
}

// a as az b bs bz ys yz
Result<Types> infer_binary(const Graph& graph, const Node& node) {
    const Type &a = input_type(graph, node, 0), &b = input_type(graph, node, 3);
    auto shape = broadcast(a.shape, b.shape);
    if (!shape) {
        return bad_node(node, "has inputs " + to_string(a) + " and " + to_string(b) +
                                  ", which do not broadcast");
    }
    return Types{{a.data_type, std::move(*shape)}};
}

// The float operator of the same shapes, with these inputs.
Result<Types> infer_as(const Graph& graph, const Node& node, const char* kind,
                       std::vector<ValueId> inputs) {
    Node plain = node;
    plain.kind = kind;
    plain.inputs = std::move(inputs);
    return infer_types(graph, plain);
}

// ys yz (x xs xz)...
Result<Types> infer_concat(const Graph& graph, const Node& node) {
    if (node.inputs.size() % 3 != 2) {
        return bad_node(node, "has " + std::to_string(node.inputs.size()) +
                                  " inputs, expected 2 and 3 more per tensor");
    }
    std::vector<ValueId> tensors;
    for (size_t i = 2; i < node.inputs.size(); i += 3) tensors.push_back(node.inputs[i]);
    return infer_as(graph, node, "Concat", std::move(tensors));
}

Result<Types> infer_average_pool(const Graph& graph, const Node& node) {
    return infer_as(graph, node, "AveragePool", {node.inputs[0]});
}

Result<Types> infer_global_average_pool(const Graph& graph, const Node& node) {
    return infer_as(graph, node, "GlobalAveragePool", {node.inputs[0]});
}

uint64_t count_average_pool(const Graph& graph, const Node& node) {
    uint64_t area = 1;
    for (const int64_t size : node.get("kernel_shape", std::vector<int64_t>())) {
        area = saturating_product(area, static_cast<uint64_t>(size));
    }
    return saturating_product(area, count_output(graph, node));
}

uint64_t count_softmax(const Graph& graph, const Node& node) {
    return 5 * count_output(graph, node);
}

}  // namespace
}  // namespace vartml::graph

namespace vartml::cpu {
namespace {

// Quantise, dequantise and the element-wise QLinear forms; products are in the files of windows and
// matrices.

using Quantised = Join<Types<int8_t, int16_t, int32_t>, Types<uint8_t, uint16_t>>;

// Half to even, then clamped to the type; 0 for what is no number.
template <typename T>
T saturated(double value) {
    using Limits = std::numeric_limits<T>;
    if (std::isnan(value)) return 0;
    return static_cast<T>(
        std::clamp(value, static_cast<double>(Limits::min()), static_cast<double>(Limits::max())));
}
template <typename T>
T quantised(double real, double scale, double zero) {
    return saturated<T>(std::nearbyint(real / scale) + zero);
}

// ---- per tensor, per axis, blocked
// ----------------------------------------------------------------------------------------------------

// Scale and zero point of input 1 and 2, and how they are spread over the data.
struct Grid {
    std::vector<double> scales, zeros;
    AxisView view;
    int64_t block = 0;  // elements along the axis that share one; 0: see per_tensor
    bool per_tensor = false;

    int64_t blocks() const { return (view.size + block - 1) / block; }
};

Result<Grid> grid_of(const Call& call) {
    const Array &x = call.inputs[0], &scale = call.inputs[1];
    Grid grid;
    grid.scales = to_numbers<double>(scale);
    grid.per_tensor = grid.scales.size() == 1;
    const int64_t axis = call.node.get("axis", int64_t{1});
    const bool has_axis = axis >= 0 && axis < static_cast<int64_t>(x.shape.size());
    const int64_t block = call.node.get("block_size", int64_t{0});
    if (has_axis) grid.view = around_axis(x.shape, static_cast<size_t>(axis));
    bool fits = graph::fits_scales(call.node, x.shape, scale.shape);
    if (fits && !grid.per_tensor && block > 0)
        grid.block = std::min(block, std::max<int64_t>(grid.view.size, 1));
    grid.zeros.assign(grid.scales.size(), 0);
    if (call.has_input(2)) {
        grid.zeros = to_numbers<double>(call.inputs[2]);
        fits &= grid.zeros.size() == grid.scales.size();
    }
    if (!fits)
        return bad_data(call, "has " + std::to_string(grid.scales.size()) +
                                  " scales, expected one, one per element of the axis or one per "
                                  "block, and as many zero points");
    if (grid.per_tensor) grid.view = {1, 1, x.elements()};
    return grid;
}

// f(at, n, first, step): n elements from `at` on have the scale `first`, `first + step` …
template <typename F>
void for_each_piece(const Grid& grid, F&& f) {
    const AxisView& view = grid.view;
    for (int64_t outer = 0; outer < view.outer; ++outer) {
        for (int64_t i = 0; i < view.size; ++i) {
            const int64_t at = (outer * view.size + i) * view.inner;
            if (grid.per_tensor)
                f(at, view.inner, int64_t{0}, 0);
            else if (grid.block == 0)
                f(at, view.inner, i, 0);
            else
                f(at, view.inner, (outer * grid.blocks() + i / grid.block) * view.inner, 1);
        }
    }
}

// The quotient in float, in which ONNX has it, unless the data are integers.
template <typename X, typename Y>
void quantise_all(const Array& input, const Array& output, const Grid& grid) {
    using Quotient = std::conditional_t<std::is_same_v<Work<X>, float>, float, double>;
    for_each_piece(grid, [&](int64_t at, int64_t n, int64_t first, int64_t step) {
        const X* x = input.as<X>() + at;
        Y* y = output.as<Y>() + at;
        const double* scale = grid.scales.data() + first;
        const double* zero = grid.zeros.data() + first;
        for (int64_t i = 0; i < n; ++i, scale += step, zero += step)
            y[i] =
                saturated<Y>(static_cast<double>(std::nearbyint(static_cast<Quotient>(load(x[i])) /
                                                                static_cast<Quotient>(*scale))) +
                             *zero);
    });
}

Result<void> quantise(const Call& call) {
    const auto grid = grid_of(call);
    if (!grid) return grid.error();
    const Array &x = call.inputs[0], &y = call.outputs[0];
    Result<void> known;
    auto done = for_type<Join<Floats, Types<int32_t>>>(call, x.type, [&]<typename X>(X) {
        known = for_type<Quantised>(call, y.type,
                                    [&]<typename Y>(Y) { quantise_all<X, Y>(x, y, *grid); });
    });
    return done ? known : done;
}

// The product of two floats is exact in double and so rounded once.
Result<void> dequantise(const Call& call) {
    const auto grid = grid_of(call);
    if (!grid) return grid.error();
    const Array &input = call.inputs[0], &output = call.outputs[0];
    Result<void> known;
    auto done = for_type<Quantised>(call, input.type, [&]<typename X>(X) {
        known = for_type<Floats>(call, output.type, [&]<typename Y>(Y) {
            for_each_piece(*grid, [&](int64_t at, int64_t n, int64_t first, int64_t step) {
                const X* x = input.as<X>() + at;
                Y* y = output.as<Y>() + at;
                const double* scale = grid->scales.data() + first;
                const double* zero = grid->zeros.data() + first;
                for (int64_t i = 0; i < n; ++i, scale += step, zero += step)
                    y[i] = graph::convert<Y>((static_cast<double>(x[i]) - *zero) * *scale);
            });
        });
    });
    return done ? known : done;
}

// ---- QLinear: the operator on the real numbers
// ----------------------------------------------------------------------------------------------------

struct Affine {
    double scale, zero;
};

// Of the tensor whose scale is input `at` and whose zero point is the next.
Result<Affine> affine_at(const Call& call, size_t at) {
    if (!call.has_input(at) || call.inputs[at].elements() != 1)
        return bad_data(call, "has no single scale at input " + std::to_string(at));
    if (call.has_input(at + 1) && call.inputs[at + 1].elements() != 1)
        return bad_data(call, "has no single zero point at input " + std::to_string(at + 1));
    return Affine{to_numbers<double>(call.inputs[at])[0],
                  call.has_input(at + 1) ? to_numbers<double>(call.inputs[at + 1])[0] : 0};
}

// A tensor of doubles that owns its elements.
struct Reals {
    explicit Reals(const Shape& shape) : numbers(static_cast<size_t>(shape.elements()) + 1) {
        array = {DataType::float64, shape, reinterpret_cast<std::byte*>(numbers.data())};
    }
    std::vector<double> numbers;
    Array array;
};

// Inputs (data scale zero) for each operand, then the scale and zero point of the output: runs the
// float operator of the same attributes in double.
Result<void> through_reals(const Call& call, std::string_view kind) {
    const Kernel kernel = find_kernel(kind);
    if (!kernel)
        return Error{ErrorCode::unsupported, "node '" + call.node.name + "' (" + call.node.kind +
                                                 ") needs " + std::string(kind) +
                                                 ", which the CPU partition does not run"};
    std::vector<Reals> operands;
    const size_t output_scale = call.inputs.size() - call.inputs.size() % 3;
    for (size_t at = 0; at < output_scale; at += 3) {
        const auto affine = affine_at(call, at + 1);
        if (!affine) return affine.error();
        const Array& x = call.inputs[at];
        Reals& reals = operands.emplace_back(x.shape);
        auto done = for_type<Quantised>(call, x.type, [&]<typename T>(T) {
            std::ranges::transform(x.span<T>(), reals.numbers.begin(), [&](T q) {
                return (static_cast<double>(q) - affine->zero) * affine->scale;
            });
        });
        if (!done) return done;
    }
    const auto affine = affine_at(call, output_scale);
    if (!affine) return affine.error();
    const Array& y = call.outputs[0];
    Reals result(y.shape);
    std::vector<Array> inputs;
    for (const Reals& operand : operands) inputs.push_back(operand.array);
    graph::Node node = call.node;
    node.kind = kind;
    node.domain.clear();
    if (auto done = kernel({node, inputs, {&result.array, 1}}); !done) return done;
    return for_type<Quantised>(call, y.type, [&]<typename T>(T) {
        const double* real = result.numbers.data();
        for (T& q : y.span<T>()) q = quantised<T>(*real++, affine->scale, affine->zero);
    });
}

template <const char* kind>
Result<void> as_reals(const Call& call) {
    return through_reals(call, kind);
}

// ys yz (x xs xz)…: from the grid of each input to that of the output. A tensor that is on it
// already keeps its elements.
Result<void> concatenate(const Call& call) {
    const Array& y = call.outputs[0];
    const auto to = affine_at(call, 0);
    if (!to) return to.error();
    const size_t axis = axis_of(call, y.shape);
    const AxisView whole = around_axis(y.shape, axis);
    int64_t start = 0;
    for (size_t input = 2; input < call.inputs.size(); input += 3) {
        const Array& x = call.inputs[input];
        const auto from = affine_at(call, input + 1);
        if (!from) return from.error();
        if (x.type != y.type) return no_type(call, x.type);
        const bool same = from->scale == to->scale && from->zero == to->zero;
        const AxisView part = around_axis(x.shape, axis);
        auto done = for_type<Quantised>(call, x.type, [&]<typename T>(T) {
            const int64_t run = part.size * part.inner;
            const auto moved = [&](T q) {
                const double real = (static_cast<double>(q) - from->zero) * from->scale;
                return same ? q : quantised<T>(real, to->scale, to->zero);
            };
            for (int64_t outer = 0; outer < part.outer; ++outer) {
                const std::span<const T> line(x.as<const T>() + outer * run,
                                              static_cast<size_t>(run));
                std::ranges::transform(line, y.as<T>() + (outer * whole.size + start) * whole.inner,
                                       moved);
            }
        });
        if (!done) return done;
        start += part.size;
    }
    return {};
}

constexpr char add[] = "Add", multiply[] = "Mul", sigmoid[] = "Sigmoid", leaky_relu[] = "LeakyRelu",
               softmax[] = "Softmax", average_pool[] = "AveragePool",
               global_average_pool[] = "GlobalAveragePool";

}  // namespace
}  // namespace vartml::cpu

namespace vartml::graph {
namespace {

constexpr Traits coding = Trait::coding | Trait::codes;

constexpr OpInfo rows[] = {
    {"QuantizeLinear", 2, 3, 1, 1, "axis:i=1 block_size:i=0 output_dtype:s", infer_quantise,
     count_output, cpu::quantise, coding},
    {"DequantizeLinear", 2, 3, 1, 1, "axis:i=1 block_size:i=0 output_dtype:s", infer_dequantise,
     count_output, cpu::dequantise, coding},
    {"QLinearAdd", 8, 8, 1, 1, "", infer_binary, count_output, cpu::as_reals<cpu::add>,
     Trait::codes | Trait::linear},
    {"QLinearMul", 8, 8, 1, 1, "", infer_binary, count_output, cpu::as_reals<cpu::multiply>,
     Trait::codes},
    {"QLinearConcat", 5, -1, 1, 1, "axis:i*", infer_concat, count_none, cpu::concatenate,
     Trait::codes},
    {"QLinearSigmoid", 5, 5, 1, 1, "", infer_unary, count_output, cpu::as_reals<cpu::sigmoid>,
     Trait::codes},
    {"QLinearLeakyRelu", 5, 5, 1, 1, "alpha:f=0.01", infer_unary, count_output,
     cpu::as_reals<cpu::leaky_relu>, Trait::codes},
    {"QLinearSoftmax", 5, 5, 1, 1, "axis:i=-1", infer_unary, count_softmax,
     cpu::as_reals<cpu::softmax>, Trait::codes},
    {"QLinearAveragePool", 5, 5, 1, 1,
     "ceil_mode:i=0 count_include_pad:i=0 dilations:is kernel_shape:is* pads:is strides:is",
     infer_average_pool, count_average_pool, cpu::as_reals<cpu::average_pool>,
     Trait::codes | Trait::linear | Trait::picture_work},
    {"QLinearGlobalAveragePool", 5, 5, 1, 1, "", infer_global_average_pool, count_input,
     cpu::as_reals<cpu::global_average_pool>, Trait::codes | Trait::linear | Trait::picture_work},
};

}  // namespace

std::span<const OpInfo> quantised_ops() {
    return rows;
}

}  // namespace vartml::graph
