// SPDX-License-Identifier: Apache-2.0
// Pools, and the reverse of the largest element's.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "lib/graph/ops.h"
#include "lib/graph/ops_window.h"
#include "lib/graph/products.h"

namespace vartml::graph {
namespace {

Result<Types> infer_pool(const Graph& graph, const Node& node) {
    Type y = input_type(graph, node, 0);
    auto window = window_of(graph, node);
    if (!window) return window.error();
    const bool ceil_mode = node.get("ceil_mode", int64_t{0}) != 0;
    for (size_t i = 0; i < window->rank(); ++i) {
        y.shape[i + 2] = window_positions(y.shape[i + 2], *window, i, ceil_mode);
        if (y.shape[i + 2] < 1) {
            return bad_node(node, "has the padded input " + to_string(input_type(graph, node, 0)) +
                                      ", which is smaller than its kernel " +
                                      to_string(window->kernel));
        }
    }
    return Types{y, {DataType::int64, y.shape}};
}

Result<Types> infer_global_pool(const Graph& graph, const Node& node) {
    Type y = input_type(graph, node, 0);
    if (y.shape.size() < 2) {
        return bad_node(node, "has the input " + to_string(y) + ", expected rank 2 or more");
    }
    std::fill(y.shape.begin() + 2, y.shape.end(), 1);
    return Types{y};
}

uint64_t count_pool(const Graph& graph, const Node& node) {
    auto window = window_of(graph, node);
    return window ? saturating_product(count_output(graph, node), window->taps()) : 0;
}

using Ints = std::vector<int64_t>;

// x indices output_shape?: the indices count in the shape that was pooled.
Result<Types> infer_max_unpool(const Graph& graph, const Node& node) {
    const Type &x = input_type(graph, node, 0), &indices = input_type(graph, node, 1);
    if (indices != Type{DataType::int64, x.shape}) return bad_inputs(graph, node);
    auto window = window_of(graph, node);
    if (!window) return window.error();
    Type y = x;
    for (size_t i = 0; i < window->rank(); ++i) {
        y.shape[i + 2] = bounded_product(y.shape[i + 2] - 1, window->strides[i]) -
                         window->pads_begin[i] - window->pads_end[i] + window->kernel[i];
    }
    if (!has_input(node, 2) || !is_reasonable(y)) return Types{y};
    auto shape = constant_ints(graph, node, 2);
    if (!shape) return shape.error();
    if (shape->size() != x.shape.size()) {
        return bad_node(node, "has the output shape " + to_string(*shape) +
                                  ", which does not fit its input " + to_string(x));
    }
    y.shape = std::move(*shape);
    return Types{y};
}

}  // namespace
}  // namespace vartml::graph

namespace vartml::cpu {
namespace {

Shape kernel_of(const graph::Node& node) {
    return Shape(node.get("kernel_shape", std::vector<int64_t>()));
}

// Calls f(position, y) for each row of output positions: the index of its first one, and the
// element of one channel that it is.
template <typename F>
void for_each_row(const Sliding& window, F f) {
    Index position{};
    int64_t y = 0;
    do {
        f(position, y);
        y += window.positions[window.last()];
    } while (advance(position, window.positions, window.last()));
}

// Calls f(run) for each tap of the window, in row-major order, and the positions of the row for
// which it lies inside the input.
template <typename F>
void for_each_tap(const Sliding& window, const Index& position, F f) {
    Index tap{};
    do {
        if (const Run run = run_inside(window, position, tap); run.first < run.last) f(run);
    } while (advance(tap, window.kernel, window.rank()));
}

// ---- the largest element
// -------------------------------------------------------------------------------------------

// Elements of the input, in the order that storage_order asks for: 0 last axis fastest, 1 first
// spatial axis fastest.
int64_t stored_at(int64_t element, const Shape& size, bool columns_first) {
    if (!columns_first) return element;
    int64_t place = 0, stride = size.elements();
    for (size_t axis = size.size(); axis-- > 0; element /= size[axis]) {
        stride /= size[axis];
        place += element % size[axis] * stride;
    }
    return place;
}

template <typename T>
bool is_nan(T value) {
    if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
    return false;
}

// The first of equal ones, and the first NaN where there is one. A window of padding only has the
// lowest number, and index -1.
template <typename T>
void max_pool_as(const Call& call) {
    const Array& x = call.inputs[0];
    const Sliding window = sliding(call.node, x.shape, call.outputs[0].shape, kernel_of(call.node));
    const Numbers<T> numbers(x);
    Sums<T> largest(call.outputs[0]);
    using Limits = std::numeric_limits<T>;
    largest.fill(Limits::has_infinity ? -Limits::infinity() : Limits::lowest());
    const bool indexed = call.has_output(1);
    const bool columns_first = call.node.get("storage_order", int64_t{0}) != 0;
    const int64_t size = window.size.elements(), positions = window.positions.elements();
    const int64_t stride = window.strides[window.last()];
    std::vector<int64_t> places(static_cast<size_t>(positions));  // in the channel
    for (int64_t channel = 0; channel < x.shape[0] * x.shape[1]; ++channel) {
        const T* from = numbers.data() + channel * size;
        T* to = largest.data() + channel * positions;
        std::ranges::fill(places, -1);
        for_each_row(window, [&](const Index& position, int64_t row) {
            for_each_tap(window, position, [&](const Run& run) {
                for (int64_t p = run.first; p < run.last; ++p) {
                    const T value = from[run.offset + p * stride];
                    T& best = to[row + p];
                    if (indexed && (value > best || is_nan(value) > is_nan(best) ||
                                    places[static_cast<size_t>(row + p)] < 0))
                        places[static_cast<size_t>(row + p)] = run.offset + p * stride;
                    best = value > best || is_nan(value) ? value : best;
                }
            });
        });
        if (!indexed) continue;
        int64_t* indices = call.outputs[1].as<int64_t>() + channel * positions;
        for (const int64_t place : places)
            *indices++ =
                place < 0 ? place : channel * size + stored_at(place, window.size, columns_first);
    }
    largest.store();
}

Result<void> max_pool(const Call& call) {
    const auto pool = [&]<typename T>(T) {
        using Narrow = std::conditional_t<std::is_integral_v<T>, T, Computed<T>>;
        if (call.outputs[0].elements() > 0) max_pool_as<Narrow>(call);
    };
    const DataType type = call.inputs[0].type;
    if (with_float(type, pool) || with_one_of<int8_t, uint8_t>(type, pool)) return {};
    return no_type(call, type);
}

// The elements go to where MaxPool found them; the shape that the indices count in may be smaller
// than the one asked for.
template <typename T>
Result<void> max_unpool_as(const Call& call) {
    const Array &x = call.inputs[0], &indices = call.inputs[1], &y = call.outputs[0];
    const Shape kernel = kernel_of(call.node);
    const Sliding window = sliding(call.node, x.shape, y.shape, kernel);
    Shape pooled = x.shape;
    for (size_t i = 0; i < kernel.size(); ++i) {
        const int64_t size = (x.shape[i + 2] - 1) * window.strides[i] + kernel[i] - window.pads[i] -
                             window.pads_end[i];
        pooled[i + 2] = std::max<int64_t>(size, 0);
    }
    std::fill_n(y.as<T>(), y.elements(), T());
    const int64_t elements = pooled.elements();
    for (int64_t i = 0; i < x.elements(); ++i) {
        const int64_t place = indices.as<int64_t>()[i];
        if (place < 0 || place >= elements)
            return bad_data(call, "puts an element at " + std::to_string(place) + " of " +
                                      std::to_string(elements));
        int64_t rest = place, to = 0, stride = 1;
        bool inside = true;
        for (size_t axis = pooled.size(); axis-- > 0; rest /= pooled[axis]) {
            inside &= rest % pooled[axis] < y.shape[axis];
            to += rest % pooled[axis] * stride;
            stride *= y.shape[axis];
        }
        if (inside) y.as<T>()[to] = x.as<T>()[i];
    }
    return {};
}

Result<void> max_unpool(const Call& call) {
    Result<void> result;
    const bool known =
        with_float(call.inputs[0].type, [&]<typename T>(T) { result = max_unpool_as<T>(call); });
    if (!known) return no_type(call, call.inputs[0].type);
    return result;
}

// ---- means and norms
// -----------------------------------------------------------------------------------------------

// Taps along one axis that lie inside the input, or inside the input and its padding.
int64_t taps_inside(const Sliding& window, size_t axis, int64_t position, bool with_padding) {
    const int64_t before = with_padding ? window.pads[axis] : 0;
    const int64_t behind = with_padding ? window.pads_end[axis] : 0;
    const int64_t dilation = window.dilations[axis], start = window.start(axis, position, 0);
    const int64_t low = start >= -before ? 0 : (-before - start + dilation - 1) / dilation;
    const int64_t room = window.size[axis] + behind - start;
    const int64_t high = room <= 0 ? 0 : (room + dilation - 1) / dilation;
    return std::max<int64_t>(std::min(high, window.kernel[axis]) - low, 0);
}

// y = finish(sum of term(x) over the window, elements in it). Padding counts as elements where it
// is asked for; what hangs over it because of ceil_mode never does.
template <typename T, typename Term, typename Finish>
void sum_pool(const Call& call, bool count_padding, Term term, Finish finish) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const Sliding window = sliding(call.node, x.shape, y.shape, kernel_of(call.node));
    const size_t last = window.last();
    const Numbers<T> numbers(x);
    Sums<T> results(y);
    const int64_t size = window.size.elements(), positions = window.positions.elements();
    const int64_t stride = window.strides[last], width = window.positions[last];
    std::vector<double> sums(static_cast<size_t>(width));
    std::vector<int64_t> counts;  // of the last axis
    for (int64_t p = 0; p < width; ++p)
        counts.push_back(taps_inside(window, last, p, count_padding));
    for (int64_t channel = 0; channel < x.shape[0] * x.shape[1]; ++channel) {
        const T* from = numbers.data() + channel * size;
        T* to = results.data() + channel * positions;
        for_each_row(window, [&](const Index& position, int64_t row) {
            std::ranges::fill(sums, 0.0);
            for_each_tap(window, position, [&](const Run& run) {
                for (int64_t p = run.first; p < run.last; ++p)
                    sums[static_cast<size_t>(p)] += term(from[run.offset + p * stride]);
            });
            int64_t outer = 1;
            for (size_t axis = 0; axis < last; ++axis)
                outer *= taps_inside(window, axis, position[axis], count_padding);
            for (size_t p = 0; p < sums.size(); ++p)
                to[row + static_cast<int64_t>(p)] =
                    static_cast<T>(finish(sums[p], static_cast<double>(outer * counts[p])));
        });
    }
    results.store();
}

// A mean of no elements is 0.
double mean(double sum, double count) {
    return count > 0 ? sum / count : 0;
}

// |x|^p and the root of a sum of them.
struct Norm {
    double p;
    double term(double x) const {
        return p == 1 ? std::fabs(x) : p == 2 ? x * x : std::pow(std::fabs(x), p);
    }
    double finish(double sum) const {
        return p == 1 ? sum : p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p);
    }
};
Norm norm_of(const graph::Node& node) {
    return {static_cast<double>(node.get("p", int64_t{2}))};
}

Result<void> average_pool(const Call& call) {
    const bool padding = call.node.get("count_include_pad", int64_t{0}) != 0;
    const bool known = with_float(call.inputs[0].type, [&]<typename T>(T) {
        if (call.outputs[0].elements() > 0)
            sum_pool<Computed<T>>(call, padding, [](double v) { return v; }, mean);
    });
    if (!known) return no_type(call, call.inputs[0].type);
    return {};
}

Result<void> lp_pool(const Call& call) {
    const Norm norm = norm_of(call.node);
    const bool known = with_float(call.inputs[0].type, [&]<typename T>(T) {
        if (call.outputs[0].elements() > 0)
            sum_pool<Computed<T>>(
                call, false, [norm](double v) { return norm.term(v); },
                [norm](double sum, double) { return norm.finish(sum); });
    });
    if (!known) return no_type(call, call.inputs[0].type);
    return {};
}

// ---- over the whole channel
// ----------------------------------------------------------------------------------------

// y = of(first, last) for the elements of each channel.
template <typename F>
Result<void> global_pool(const Call& call, F of) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const bool known = with_float(x.type, [&]<typename T>(T) {
        const Numbers<Computed<T>> numbers(x);
        Sums<Computed<T>> results(y);
        const int64_t size = spatial(x.shape).elements();
        for (int64_t i = 0; i < y.elements(); ++i) {
            const auto* first = numbers.data() + i * size;
            results.data()[i] = static_cast<Computed<T>>(of(first, first + size));
        }
        results.store();
    });
    if (!known) return no_type(call, x.type);
    return {};
}

Result<void> global_average_pool(const Call& call) {
    return global_pool(call, [](const auto* first, const auto* last) {
        const auto count = static_cast<double>(last - first);
        double sum = 0;
        for (; first != last; ++first) sum += static_cast<double>(*first);
        return mean(sum, count);
    });
}

Result<void> global_max_pool(const Call& call) {
    return global_pool(call, [](const auto* first, const auto* last) {
        double best = -std::numeric_limits<double>::infinity();
        for (; first != last; ++first) {
            const auto value = static_cast<double>(*first);
            best = value > best || std::isnan(value) ? value : best;
        }
        return best;
    });
}

Result<void> global_lp_pool(const Call& call) {
    const Norm norm = norm_of(call.node);
    return global_pool(call, [norm](const auto* first, const auto* last) {
        double sum = 0;
        for (; first != last; ++first) sum += norm.term(static_cast<double>(*first));
        return norm.finish(sum);
    });
}

}  // namespace
}  // namespace vartml::cpu

namespace vartml::graph {
namespace {

constexpr OpInfo rows[] = {
    {"MaxPool", 1, 1, 1, 2,
     "ceil_mode:i=0 dilations:is kernel_shape:is* pads:is storage_order:i=0 strides:is", infer_pool,
     count_pool, cpu::max_pool, Trait::picture_work},
    {"AveragePool", 1, 1, 1, 1,
     "ceil_mode:i=0 count_include_pad:i=0 dilations:is kernel_shape:is* pads:is strides:is",
     infer_pool, count_pool, cpu::average_pool, Trait::linear | Trait::picture_work},
    {"LpPool", 1, 1, 1, 1, "ceil_mode:i=0 dilations:is kernel_shape:is* p:i=2 pads:is strides:is",
     infer_pool, count_pool, cpu::lp_pool},
    {"GlobalAveragePool", 1, 1, 1, 1, "", infer_global_pool, count_input, cpu::global_average_pool,
     Trait::linear | Trait::picture_work},
    {"GlobalLpPool", 1, 1, 1, 1, "p:i=2", infer_global_pool, count_input, cpu::global_lp_pool},
    {"GlobalMaxPool", 1, 1, 1, 1, "", infer_global_pool, count_input, cpu::global_max_pool,
     Trait::picture_work},
    {"MaxUnpool", 2, 3, 1, 1, "kernel_shape:is* pads:is strides:is", infer_max_unpool, count_none,
     cpu::max_unpool, Trait::sized_by_2},
};

}  // namespace

std::span<const OpInfo> pool_ops() {
    return rows;
}

}  // namespace vartml::graph
