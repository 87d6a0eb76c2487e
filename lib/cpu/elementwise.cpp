// SPDX-License-Identifier: Apache-2.0
// Element-wise operators with types or inputs of their own; those of one formula are in
// elementwise_unary.cpp and elementwise_binary.cpp.
#include "lib/cpu/elementwise.h"

#include <cmath>
#include <cstring>

#include "lib/cpu/broadcast.h"
#include "lib/graph/numbers.h"

namespace vartml::cpu {

namespace {

void copy(const Array& from, const Array& to) {
    if (from.data != to.data) std::memcpy(to.data, from.data, to.size_bytes());
}

Result<void> identity(const Call& call) {
    copy(call.inputs[0], call.outputs[0]);
    return {};
}

template <typename X, typename Y>
void convert_all(const Array& x, const Array& y) {
    const X* from = x.as<X>();
    for (Y& to : y.span<Y>()) to = graph::convert<Y>(*from++);
}

Result<void> cast(const Call& call) {
    const Array &x = call.inputs[0], &y = call.outputs[0];
    if (x.type == y.type) return identity(call);
    return for_type<AllTypes>(call, x.type, [&]<typename X>(X) {
        graph::with_type(y.type, [&]<typename Y>(Y) {
            if constexpr (!std::is_same_v<X, Y>) convert_all<X, Y>(x, y);
        });
    });
}

// A NaN stays one; the upper bound wins where the two cross.
template <typename T>
void clip_all(const Array& x, const Array& y, Work<T> low, Work<T> high) {
    const T* from = x.as<T>();
    for (T& to : y.span<T>()) {
        const Work<T> value = load(*from++), raised = value < low ? low : value;
        to = store<T>(raised > high ? high : raised);
    }
}

Result<void> clip(const Call& call) {
    return for_type<Numbers>(call, call.inputs[0].type, [&]<typename T>(T) {
        using Limits = std::numeric_limits<Work<T>>;
        Work<T> low = Limits::has_infinity ? -Limits::infinity() : Limits::min();
        Work<T> high = Limits::has_infinity ? Limits::infinity() : Limits::max();
        const auto take = [&](size_t input, const char* key, Work<T>& bound) {
            if (call.node.has(key)) bound = graph::convert<Work<T>>(call.node.get(key, 0.0F));
            if (call.has_input(input)) bound = load(*call.inputs[input].as<T>());
        };
        take(1, "min", low);
        take(2, "max", high);
        clip_all<T>(call.inputs[0], call.outputs[0], low, high);
    });
}

// Types of one size are one type here.
template <typename F>
Result<void> for_size(const Call& call, DataType type, F&& f) {
    switch (size_bytes(type)) {
        case 1:
            f(uint8_t());
            return {};
        case 2:
            f(uint16_t());
            return {};
        case 4:
            f(uint32_t());
            return {};
        case 8:
            f(uint64_t());
            return {};
        default:
            return no_type(call, type);
    }
}

Result<void> where(const Call& call) {
    const Array& y = call.outputs[0];
    return for_size(call, y.type, [&]<typename T>(T) {
        const Runs<3> runs(y.shape,
                           {call.inputs[0].shape, call.inputs[1].shape, call.inputs[2].shape});
        const int64_t step_c = runs.step(0), step_a = runs.step(1), step_b = runs.step(2);
        runs.for_each([&](int64_t at, const std::array<int64_t, 3>& offsets) {
            const Bool* c = call.inputs[0].as<Bool>() + offsets[0];
            const T* a = call.inputs[1].as<T>() + offsets[1];
            const T* b = call.inputs[2].as<T>() + offsets[2];
            T* to = y.as<T>() + at;
            for (int64_t i = 0; i < runs.length(); ++i)
                to[i] = c[i * step_c].byte != 0 ? a[i * step_a] : b[i * step_b];
        });
    });
}

// Integers to the power of integers, exact and wrapping; the reciprocal of 1 and -1 alone is one.
template <typename T, typename E>
T integer_power(T base, E exponent) {
    if (exponent < 0) {
        const bool odd = exponent % 2 != 0;
        if (base == 1) return 1;
        if constexpr (std::is_signed_v<T>)
            if (base == -1) return odd ? T{-1} : T{1};
        return 0;
    }
    auto factor = static_cast<Wrapping<T>>(base);
    Wrapping<T> power = 1;
    for (auto left = static_cast<uint64_t>(exponent); left != 0; left >>= 1) {
        if (left & 1) power *= factor;
        factor *= factor;
    }
    return static_cast<T>(power);
}

template <typename T, typename E>
T raised(T base, E exponent) {
    if constexpr (std::is_floating_point_v<T> || std::is_floating_point_v<E>)
        return graph::convert<T>(
            std::pow(static_cast<double>(base), static_cast<double>(exponent)));
    else
        return integer_power(base, exponent);
}

// The exponents, usually one, are widened to E first: their type is independent of that of the
// bases.
template <typename E>
Result<void> power_by(const Call& call, DataType type) {
    std::vector<E> exponents = to_numbers<E>(call.inputs[1]);
    const Array inputs[] = {
        call.inputs[0],
        {type, call.inputs[1].shape, reinterpret_cast<std::byte*>(exponents.data())}};
    return for_type<Numbers>(call, call.inputs[0].type, [&]<typename T>(T) {
        constexpr auto apply = [](auto base, E exponent) { return raised(base, exponent); };
        run_row(binary_row<RowElement<T>, E, apply>, inputs, call.outputs[0]);
    });
}

Result<void> power(const Call& call) {
    const DataType type = call.inputs[1].type;
    if (graph::is_float(type) || graph::is_float(call.inputs[0].type))
        return power_by<double>(call, DataType::float64);
    if (type == DataType::uint64) return power_by<uint64_t>(call, type);
    return power_by<int64_t>(call, DataType::int64);
}

constexpr KernelRow kernels[] = {
    {"Cast", cast}, {"Clip", clip}, {"Identity", identity}, {"Pow", power}, {"Where", where},
};

}  // namespace

std::span<const KernelRow> elementwise_kernels() {
    return kernels;
}

}  // namespace vartml::cpu
