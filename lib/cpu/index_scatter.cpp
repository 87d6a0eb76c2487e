// SPDX-License-Identifier: Apache-2.0
// Scatter operators: data with elements replaced or combined by index.
#include <cstring>

#include "lib/cpu/index.h"
#include "lib/cpu/kernel.h"

namespace vartml::cpu {

namespace {

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

constexpr KernelRow rows[] = {
    {"ScatterElements", scatter_elements},
    {"ScatterND", scatter_nd},
};

}  // namespace

std::span<const KernelRow> index_scatter_kernels() {
    return rows;
}

}  // namespace vartml::cpu
