// SPDX-License-Identifier: Apache-2.0
// Operators that look elements up, replace or reorder them by index.
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

}  // namespace
}  // namespace vartml::graph

namespace vartml::cpu {
namespace {

// Where the indices of the gather and scatter operators point; data is input 0, indices input 1.

// The data element that each index names along the attribute `axis`, the other axes being those of
// the index itself; `shape` is that of the indices. Errors: bad_model for an index or a shape
// outside of the data.
Result<std::vector<int64_t>> element_places(const Call& call, const Shape& shape);

// Slices of `run` elements, by their first element.
struct SlicePlaces {
    std::vector<int64_t> first;
    int64_t run = 1;
};
// What the tuples along the last axis of the indices name, behind the leading axes that data and
// indices share.
Result<SlicePlaces> slice_places(const Call& call, size_t batch_dims);

Result<void> gather(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const AxisView view =
        around_axis(x.shape, static_cast<size_t>(call.node.get("axis", int64_t{0})));
    const auto indices = read_indices(call, 1, view.size);
    if (!indices) return indices.error();
    const size_t run = static_cast<size_t>(view.inner) * vartml::size_bytes(x.type);
    if (run == 0) return {};
    std::byte* dst = y.data;
    for (int64_t outer = 0; outer < view.outer; ++outer) {
        const std::byte* src = x.data + static_cast<size_t>(outer * view.size) * run;
        for (const int64_t index : *indices) {
            std::memcpy(dst, src + static_cast<size_t>(index) * run, run);
            dst += run;
        }
    }
    return {};
}

Result<void> gather_elements(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const auto places = element_places(call, call.inputs[1].shape);
    if (!places) return places.error();
    with_word(vartml::size_bytes(x.type), [&]<typename T>(T) {
        std::byte* dst = y.data;
        for (const int64_t place : *places) {
            std::memcpy(dst, x.data + static_cast<size_t>(place) * sizeof(T), sizeof(T));
            dst += sizeof(T);
        }
    });
    return {};
}

Result<void> gather_nd(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    const auto batch_dims = static_cast<size_t>(call.node.get("batch_dims", int64_t{0}));
    const auto places = slice_places(call, batch_dims);
    if (!places) return places.error();
    const size_t run = static_cast<size_t>(places->run) * vartml::size_bytes(x.type);
    if (run == 0) return {};
    std::byte* dst = y.data;
    for (const int64_t place : places->first) {
        std::memcpy(dst, x.data + static_cast<size_t>(place) * vartml::size_bytes(x.type), run);
        dst += run;
    }
    return {};
}

Result<std::vector<int64_t>> element_places(const Call& call, const Shape& shape) {
    const Array& x = call.inputs[0];
    const auto axis = static_cast<size_t>(call.node.get("axis", int64_t{0}));
    if (shape.size() != x.shape.size()) return bad_data(call, "has indices of another rank");
    if (shape.empty()) return bad_data(call, "has no axis to count along");
    for (size_t i = 0; i < shape.size(); ++i) {
        if (i != axis && shape[i] > x.shape[i]) {
            return bad_data(call, "has indices of size " + std::to_string(shape[i]) + " in axis " +
                                      std::to_string(i) + " of size " + std::to_string(x.shape[i]));
        }
    }
    auto places = read_indices(call, 1, x.shape[axis]);
    if (!places) return places;
    Strides strides = strides_of(x.shape);
    const int64_t step = std::exchange(strides[axis], 0);
    Walk<1> walk(shape, {strides});
    for (int64_t& place : *places) {
        place = place * step + walk.offset();
        walk.next();
    }
    return places;
}

Result<SlicePlaces> slice_places(const Call& call, size_t batch_dims) {
    const Array &x = call.inputs[0], &indices = call.inputs[1];
    if (indices.type != DataType::int64 && indices.type != DataType::int32)
        return no_type(call, indices.type);
    const size_t rank = indices.shape.size();
    if (rank <= batch_dims) return bad_data(call, "has indices without a last axis");
    const auto depth = static_cast<size_t>(indices.shape.back());
    bool fits = batch_dims + depth <= x.shape.size();
    for (size_t i = 0; i < batch_dims && fits; ++i) fits = indices.shape[i] == x.shape[i];
    if (!fits) return bad_data(call, "has indices that do not fit its data");
    int64_t batches = 1;
    for (size_t i = 0; i < batch_dims; ++i) batches *= x.shape[i];
    const Strides strides = strides_of(x.shape);
    const auto tuples = depth == 0 ? std::vector<int64_t>() : read_numbers<int64_t>(indices);
    SlicePlaces places;
    for (size_t i = batch_dims + depth; i < x.shape.size(); ++i) places.run *= x.shape[i];
    int64_t count = 1;
    for (size_t i = 0; i + 1 < rank; ++i) count *= indices.shape[i];
    const int64_t per_batch = batches == 0 ? 0 : count / batches;
    const int64_t batch_size = batches == 0 ? 0 : x.elements() / batches;
    places.first.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
        int64_t place = i / per_batch * batch_size;
        for (size_t k = 0; k < depth; ++k) {
            const int64_t index = tuples[static_cast<size_t>(i) * depth + k];
            const int64_t size = x.shape[batch_dims + k];
            if (index < -size || index >= size) {
                return bad_data(
                    call, "takes element " + std::to_string(index) + " of " + std::to_string(size));
            }
            place += (index < 0 ? index + size : index) * strides[batch_dims + k];
        }
        places.first.push_back(place);
    }
    return places;
}

// The first elements of each sequence in reverse, the others as they are.
Result<void> reverse_sequence(const Call& call) {
    const Array &x = call.inputs[0], &lengths = call.inputs[1], &y = call.outputs[0];
    const int64_t batch_axis = call.node.get("batch_axis", int64_t{1});
    const int64_t time_axis = call.node.get("time_axis", int64_t{0});
    if (x.shape.size() < 2 || std::min(batch_axis, time_axis) != 0 ||
        std::max(batch_axis, time_axis) != 1) {
        return bad_data(call, "has batch and time axes other than 0 and 1");
    }
    const int64_t batch = x.shape[static_cast<size_t>(batch_axis)];
    const int64_t time = x.shape[static_cast<size_t>(time_axis)];
    if (lengths.elements() != batch) {
        return bad_data(call, "has " + std::to_string(lengths.elements()) + " lengths for " +
                                  std::to_string(batch) + " sequences");
    }
    const auto sizes = read_numbers<int64_t>(lengths);
    const size_t bytes =
        static_cast<size_t>(around_axis(x.shape, 1).inner) * vartml::size_bytes(x.type);
    const bool batch_first = batch_axis == 0;
    for (int64_t b = 0; b < batch; ++b) {
        const int64_t length = sizes[static_cast<size_t>(b)];
        if (length < 0 || length > time) {
            return bad_data(call, "reverses " + std::to_string(length) + " of " +
                                      std::to_string(time) + " elements");
        }
        const auto offset = [&](int64_t t) {
            return static_cast<size_t>(batch_first ? b * time + t : t * batch + b) * bytes;
        };
        for (int64_t t = 0; t < time && bytes > 0; ++t) {
            const int64_t from = t < length ? length - 1 - t : t;
            std::memcpy(y.data + offset(t), x.data + offset(from), bytes);
        }
    }
    return {};
}

// Scatter operators: data with elements replaced or combined by index.

// Integers wrap.
struct Add {
    template <typename N>
    N operator()(N a, N b) const {
        if constexpr (std::is_integral_v<N>)
            return static_cast<N>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
        else
            return a + b;
    }
};
struct Mul {
    template <typename N>
    N operator()(N a, N b) const {
        if constexpr (std::is_integral_v<N>)
            return static_cast<N>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
        else
            return a * b;
    }
};
// NaN wins, as it does in the operators Max and Min.
struct Max {
    template <typename N>
    N operator()(N a, N b) const {
        return is_less(a, b) ? b : a;
    }
};
struct Min {
    template <typename N>
    N operator()(N a, N b) const {
        return is_nan(b) || b < a ? b : a;
    }
};

// Slices of `run` elements of the output and what they are combined with.
template <typename T>
struct Updates {
    const std::vector<int64_t>& places;
    int64_t run;
    const T* elements;
};

template <typename T, typename Operation>
void combine_into(Number<T>* target, const Updates<T>& updates, Operation operation) {
    const T* update = updates.elements;
    for (const int64_t place : updates.places) {
        for (int64_t i = 0; i < updates.run; ++i, ++update)
            target[place + i] = operation(target[place + i], number(*update));
    }
}

template <typename T, typename Operation>
void combine(std::span<T> y, const Updates<T>& updates, Operation operation) {
    if constexpr (std::is_same_v<Number<T>, T>) {
        combine_into(y.data(), updates, operation);
    } else {
        // Short floats are rounded once, however many updates an element gets.
        std::vector<Number<T>> wide(y.size());
        for (size_t i = 0; i < y.size(); ++i) wide[i] = number(y[i]);
        combine_into(wide.data(), updates, operation);
        for (size_t i = 0; i < y.size(); ++i) y[i] = graph::convert<T>(wide[i]);
    }
}

template <typename T>
void combine_by(std::string_view reduction, std::span<T> y, const Updates<T>& updates) {
    constexpr bool is_bool = std::is_same_v<T, graph::Bool>;
    if (reduction == "max" || (is_bool && reduction == "add")) return combine(y, updates, Max());
    if (reduction == "min" || (is_bool && reduction == "mul")) return combine(y, updates, Min());
    if (reduction == "add") return combine(y, updates, Add());
    combine(y, updates, Mul());
}

Result<void> scatter(const Call& call, const std::vector<int64_t>& places, int64_t run) {
    const Array &x = call.inputs[0], &updates = call.inputs[2], &y = call.outputs[0];
    const std::string reduction = call.node.get("reduction", "none");
    if (updates.type != x.type || updates.elements() != static_cast<int64_t>(places.size()) * run)
        return bad_data(call, "has updates that do not fit its data and indices");
    const size_t width = vartml::size_bytes(x.type), bytes = static_cast<size_t>(run) * width;
    if (x.elements() == 0 || bytes == 0) return {};
    std::memcpy(y.data, x.data, x.size_bytes());
    if (reduction == "none") {
        const std::byte* src = updates.data;
        for (const int64_t place : places) {
            std::memcpy(y.data + static_cast<size_t>(place) * width, src, bytes);
            src += bytes;
        }
        return {};
    }
    const bool known = graph::with_type(y.type, [&]<typename T>(T) {
        combine_by(reduction, y.span<T>(), Updates<T>{places, run, updates.as<T>()});
    });
    return known ? Result<void>() : no_type(call, y.type);
}

Result<void> scatter_elements(const Call& call) {
    const auto places = element_places(call, call.inputs[1].shape);
    return places ? scatter(call, *places, 1) : places.error();
}

Result<void> scatter_nd(const Call& call) {
    const auto places = slice_places(call, 0);
    return places ? scatter(call, places->first, places->run) : places.error();
}

}  // namespace
}  // namespace vartml::cpu

namespace vartml::graph {
namespace {

constexpr OpInfo rows[] = {
    {"Gather", 2, 2, 1, 1, "axis:i=0", infer_gather, count_none, cpu::gather,
     Trait::picks | Trait::carries},
    {"GatherElements", 2, 2, 1, 1, "axis:i=0", infer_gather_elements, count_none,
     cpu::gather_elements},
    {"GatherND", 2, 2, 1, 1, "batch_dims:i=0", infer_gather_nd, count_none, cpu::gather_nd},
    {"ScatterElements", 3, 3, 1, 1, "axis:i=0 reduction:s=none|add|mul|max|min",
     infer_scatter_elements, count_none, cpu::scatter_elements},
    {"ScatterND", 3, 3, 1, 1, "reduction:s=none|add|mul|max|min", infer_scatter_nd, count_none,
     cpu::scatter_nd},
    {"ReverseSequence", 2, 2, 1, 1, "batch_axis:i=1 time_axis:i=0", infer_reverse_sequence,
     count_none, cpu::reverse_sequence},
};

}  // namespace

std::span<const OpInfo> index_ops() {
    return rows;
}

}  // namespace vartml::graph
