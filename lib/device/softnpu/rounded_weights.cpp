// SPDX-License-Identifier: Apache-2.0
#include "lib/device/softnpu/rounded_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "lib/device/softnpu/conv_step.h"

namespace vartml::softnpu {
namespace {

constexpr uint32_t kept_bits = 0xFFFF0000U, one = 0x10000U;
// What the square of the sum of the errors counts beside the sum of their squares: the square of
// the mean of what is read, as a part of its variance.
constexpr double weight_of_sum = 2;

// A weight between the two bf16 numbers beside it.
struct Neighbours {
    float nearer, other;
};

Neighbours neighbours_of(float weight) {
    const uint32_t bits = std::bit_cast<uint32_t>(weight);
    const auto inner = std::bit_cast<float>(bits & kept_bits);
    const auto outer = std::bit_cast<float>((bits & kept_bits) + one);
    const float to_inner = std::abs(weight - inner), to_outer = std::abs(outer - weight);
    const bool is_inner = to_inner < to_outer || (to_inner == to_outer && (bits & one) == 0);
    return is_inner ? Neighbours{inner, outer} : Neighbours{outer, inner};
}

// A weight that may go the other way.
struct Turn {
    float* weight;
    float other;
    float error;  // afterwards, as a part of the distance between the neighbours
    double cost;  // what it adds to the sum of the squares
};

void round_filter(std::span<float> filter) {
    double sum = 0;  // of the errors
    std::vector<Turn> turns;
    // The sum of n errors is about 0.3 sqrt(n) steps; turns that cost more are not worth it.
    const float most_error = 0.5F + 4 / std::sqrt(static_cast<float>(filter.size()));
    for (float& weight : filter) {
        const auto [nearer, other] = neighbours_of(weight);
        if (weight == nearer || !std::isfinite(weight) || !std::isfinite(other)) continue;
        const double before = static_cast<double>(nearer) - static_cast<double>(weight);
        const double after = static_cast<double>(other) - static_cast<double>(weight);
        const float error = std::abs(other - weight) / std::abs(other - nearer);
        if (error <= most_error)
            turns.push_back({&weight, other, error, after * after - before * before});
        sum += before;
        weight = nearer;
    }
    std::ranges::stable_sort(turns, {}, &Turn::error);
    for (const Turn& turn : turns) {
        const double after =
            sum + static_cast<double>(turn.other) - static_cast<double>(*turn.weight);
        if (weight_of_sum * (after * after - sum * sum) + turn.cost >= 0) continue;
        sum = after;
        *turn.weight = turn.other;
    }
}

}  // namespace

std::vector<float> round_filters(std::vector<float> weights, size_t num_filters) {
    const size_t size = weights.size() / num_filters;
    for (size_t i = 0; i < num_filters; ++i)
        round_filter(std::span(weights).subspan(i * size, size));
    return weights;
}

std::vector<float> rounded_weights(Lowering& lowering, graph::ValueId id) {
    const auto num_filters = static_cast<size_t>(lowering.value(id).type.shape[0]);
    return round_filters(floats(lowering, id), num_filters);
}

}  // namespace vartml::softnpu
