// SPDX-License-Identifier: Apache-2.0
// Many elements become one.
#include "lib/graph/ops_reduction.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/graph/ops.h"
#include "lib/graph/typed.h"

namespace vartml::graph {
namespace {

std::vector<int64_t> reduced(std::vector<int64_t> shape, std::span<const int64_t> axes,
                             bool keep_axes) {
    std::vector<int64_t> result;
    for (size_t i = 0; i < shape.size(); ++i) {
        if (std::ranges::find(axes, static_cast<int64_t>(i)) == axes.end()) {
            result.push_back(shape[i]);
        } else if (keep_axes) {
            result.push_back(1);
        }
    }
    return result;
}

Result<Types> infer_reduce(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    if (node.inputs.size() > 1) {
        return Error{
            ErrorCode::unsupported,
            "node '" + node.name + "' (" + node.kind +
                ") takes its axes from a tensor that depends on the input data; export the "
                "model with constant axes"};
    }
    const auto axes = node.get("axes", std::vector<int64_t>());
    for (const int64_t axis : axes) {
        if (axis < 0 || axis >= static_cast<int64_t>(x.shape.size())) {
            return bad_node(
                node, "reduces axes " + to_string(axes) + ", outside of its input " + to_string(x));
        }
    }
    const bool keep = node.get("keepdims", int64_t{1}) != 0;
    return Types{{x.data_type, reduced(x.shape, axes, keep)}};
}

Result<Types> infer_arg(const Graph& graph, const Node& node) {
    const Type& x = input_type(graph, node, 0);
    const int64_t axis[] = {wrap_axis(node.get("axis", int64_t{0}), x.shape.size())};
    if (axis[0] < 0) {
        return bad_node(node, "has the axis " + std::to_string(node.get("axis", int64_t{0})) +
                                  ", outside of its input " + to_string(x));
    }
    const bool keep = node.get("keepdims", int64_t{1}) != 0;
    return Types{{DataType::int64, reduced(x.shape, axis, keep)}};
}

}  // namespace
}  // namespace vartml::graph

namespace vartml::cpu {
namespace {

// Reductions over any axes: sums of floats in double, integers exactly and wrapping.

template <typename T>
inline constexpr bool is_real = std::is_floating_point_v<Work<T>>;

// Types to accumulate an element type T in: its own for integers, 64 bits, or always double.
struct Exact {
    template <typename T>
    using Total = std::conditional_t<is_real<T>, double, Work<T>>;
};
struct Wide {
    template <typename T>
    using Total = std::conditional_t<is_real<T>, double,
                                     std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
};
struct Real {
    template <typename T>
    using Total = double;
};
struct Same {
    template <typename T>
    using Total = std::conditional_t<std::is_same_v<T, Bool>, uint8_t, Work<T>>;
};

template <typename T>
void write(const Array& y, auto&& value) {
    size_t i = 0;
    for (T& to : y.span<T>()) to = store<T>(graph::convert<Work<T>>(value(i++)));
}

// inline, so that these types have the names of their variables: clang numbers the lambdas of a
// file, and the linker would take objects of equal numbers for one.
inline constexpr auto as_it_is = [](auto total, size_t) { return total; };

// finish(apply(… apply(start, x0) …, xn), n).
template <typename List, typename In, auto start, auto apply, auto finish = as_it_is>
Result<void> reduce(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const Shape kept = without_axes(x.shape, call.node.get("axes", std::vector<int64_t>()));
    size_t count = 1;
    for (size_t i = 0; i < kept.size(); ++i)
        if (kept[i] != x.shape[i]) count *= static_cast<size_t>(x.shape[i]);
    return for_type<List>(call, x.type, [&]<typename T>(T) {
        using Total = In::template Total<T>;
        const auto totals = accumulate<T>(x, kept, start.template operator()<Total>(), apply);
        write<T>(y, [&](size_t i) { return finish(totals[i], count); });
    });
}

inline constexpr auto zero = []<typename Total>() { return Total{}; };
inline constexpr auto one = []<typename Total>() { return Total{1}; };
inline constexpr auto least = []<typename Total>() {
    using Limits = std::numeric_limits<Total>;
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
};
inline constexpr auto greatest = []<typename Total>() {
    using Limits = std::numeric_limits<Total>;
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
};
inline constexpr auto add = [](auto total, auto x) { return sum(total, x); };
inline constexpr auto add_size = [](auto total, auto x) { return sum(total, absolute(x)); };
inline constexpr auto add_square = [](auto total, auto x) { return sum(total, product(x, x)); };
// An integer mean drops the fraction.
inline constexpr auto multiply = [](auto a, auto b) { return product(a, b); };
inline constexpr auto larger_one = [](auto a, auto b) { return larger(a, b); };
inline constexpr auto smaller_one = [](auto a, auto b) { return smaller(a, b); };
inline constexpr auto is_larger = [](auto a, auto b) { return a > b; };
inline constexpr auto is_smaller = [](auto a, auto b) { return a < b; };
inline constexpr auto root = [](double total, size_t) { return std::sqrt(total); };
inline constexpr auto logarithm = [](double total, size_t) { return std::log(total); };
inline constexpr auto divide = [](auto total, size_t count) {
    using Total = decltype(total);
    if constexpr (std::is_integral_v<Total>) {
        return count == 0 ? Total{} : static_cast<Total>(total / static_cast<Total>(count));
    } else {
        return total / static_cast<Total>(count);
    }
};

// The largest element is taken out, so that the exponentials stay finite.
Result<void> reduce_log_sum_exp(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const Shape kept = without_axes(x.shape, call.node.get("axes", std::vector<int64_t>()));
    return for_type<Numbers>(call, x.type, [&]<typename T>(T) {
        constexpr double infinity = std::numeric_limits<double>::infinity();
        auto shifts =
            accumulate<T>(x, kept, -infinity, [](double a, double b) { return larger(a, b); });
        for (double& shift : shifts)
            if (!std::isfinite(shift)) shift = 0;
        std::vector<double> sums(shifts.size());
        for_each_with_group<T>(x, kept, [&](Work<T> element, size_t i) {
            sums[i] += std::exp(static_cast<double>(element) - shifts[i]);
        });
        write<T>(y, [&](size_t i) { return std::log(sums[i]) + shifts[i]; });
    });
}

// The first place of the extreme element along an axis, or the last. A NaN is more extreme than
// any number, as in numpy.
template <typename List, auto is_more>
Result<void> find_extreme(const Call& call) {
    const Array& x = call.inputs[0];
    const bool last = call.node.get("select_last_index", int64_t{0}) != 0;
    const AxisView view = around_axis(x.shape, axis_of(call, x.shape));
    if (view.size == 0 && view.outer * view.inner > 0)
        return bad_data(call, "looks for an element along an axis without elements");
    return for_type<List>(call, x.type, [&]<typename T>(T) {
        const T* from = x.as<T>();
        int64_t* places = call.outputs[0].as<int64_t>();
        std::vector<Work<T>> best(static_cast<size_t>(view.inner));
        for (int64_t outer = 0; outer < view.outer; ++outer, places += view.inner) {
            for (int64_t place = 0; place < view.size; ++place) {
                for (int64_t i = 0; i < view.inner; ++i) {
                    const Work<T> element = load(*from++);
                    Work<T>& record = best[static_cast<size_t>(i)];
                    const bool wins =
                        place == 0 ||
                        (record == record ? is_more(element, record) || element != element ||
                                                (last && element == record)
                                          : last && element != element);
                    if (!wins) continue;
                    record = element;
                    places[i] = place;
                }
            }
        }
    });
}

Result<void> cumulate(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    int64_t axis = call.node.get("axis", int64_t{0});
    const auto rank = static_cast<int64_t>(x.shape.size());
    if (call.has_input(1)) {
        const auto given = to_numbers<int64_t>(call.inputs[1]);
        if (given.size() != 1) return bad_data(call, "needs one axis");
        axis = given[0] < 0 ? given[0] + rank : given[0];
    }
    if (axis < 0 || axis >= rank)
        return bad_data(call,
                        "sums along axis " + std::to_string(axis) + " of " + std::to_string(rank));
    const bool exclusive = call.node.get("exclusive", int64_t{0}) != 0;
    const bool reverse = call.node.get("reverse", int64_t{0}) != 0;
    const AxisView view = around_axis(x.shape, static_cast<size_t>(axis));
    return for_type<Numbers>(call, x.type, [&]<typename T>(T) {
        using Total = Exact::Total<T>;
        std::vector<Total> totals(static_cast<size_t>(view.inner));
        for (int64_t outer = 0; outer < view.outer; ++outer) {
            std::ranges::fill(totals, Total{});
            for (int64_t step = 0; step < view.size; ++step) {
                const int64_t place = reverse ? view.size - 1 - step : step;
                const int64_t at = (outer * view.size + place) * view.inner;
                const T* from = x.as<T>() + at;
                T* to = y.as<T>() + at;
                for (Total& total : totals) {
                    const Total before = total;
                    total = sum(total, static_cast<Total>(load(*from++)));
                    *to++ = store<T>(static_cast<Work<T>>(exclusive ? before : total));
                }
            }
        }
    });
}

using graph::OpInfo;
using graph::Trait;
using graph::Traits;

constexpr OpInfo reduction(std::string_view kind, Kernel kernel, Traits traits = {}) {
    return {kind,
            1,
            2,
            1,
            1,
            "axes:is@1 keepdims:i=1",
            graph::infer_reduce,
            graph::count_input,
            kernel,
            Trait::reduces | traits};
}
constexpr OpInfo extreme(std::string_view kind, Kernel kernel) {
    return {kind,
            1,
            1,
            1,
            1,
            "axis:i=0 keepdims:i=1 select_last_index:i=0",
            graph::infer_arg,
            graph::count_input,
            kernel,
            Trait::exact_0};
}

constexpr OpInfo rows[] = {
    reduction("ReduceL1", reduce<Numbers, Exact, zero, add_size>),
    reduction("ReduceL2", reduce<Numbers, Real, zero, add_square, root>),
    reduction("ReduceLogSum", reduce<Numbers, Real, zero, add, logarithm>),
    reduction("ReduceLogSumExp", reduce_log_sum_exp),
    reduction("ReduceMax", reduce<AllTypes, Same, least, larger_one>),
    reduction("ReduceMean", reduce<Numbers, Wide, zero, add, divide>, Trait::linear),
    reduction("ReduceMin", reduce<AllTypes, Same, greatest, smaller_one>),
    reduction("ReduceProd", reduce<Numbers, Exact, one, multiply>),
    reduction("ReduceSum", reduce<Numbers, Exact, zero, add>, Trait::carries),
    reduction("ReduceSumSquare", reduce<Numbers, Exact, zero, add_square>),
    extreme("ArgMax", find_extreme<Numbers, is_larger>),
    extreme("ArgMin", find_extreme<Numbers, is_smaller>),
    {"CumSum", 1, 2, 1, 1, "axis:i@1 exclusive:i=0 reverse:i=0", graph::infer_same,
     graph::count_input, cumulate, Trait::exact_0 | Trait::keeps_shape},
};

}  // namespace
}  // namespace vartml::cpu

namespace vartml::graph {

std::span<const OpInfo> reduction_ops() {
    return cpu::rows;
}

}  // namespace vartml::graph
