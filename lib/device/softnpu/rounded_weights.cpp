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
// Of the distance between the neighbours.
constexpr float most_error = 0.55F;

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
};

void round_filter(std::span<float> filter) {
    double sum = 0;  // of the errors
    std::vector<Turn> turns;
    for (float& weight : filter) {
        const auto [nearer, other] = neighbours_of(weight);
        if (weight == nearer || !std::isfinite(weight) || !std::isfinite(other)) continue;
        const float error = std::abs(other - weight) / std::abs(other - nearer);
        if (error <= most_error) turns.push_back({&weight, other, error});
        sum += static_cast<double>(nearer) - static_cast<double>(weight);
        weight = nearer;
    }
    std::ranges::stable_sort(turns, {}, &Turn::error);
    for (const Turn& turn : turns) {
        const double after =
            sum + static_cast<double>(turn.other) - static_cast<double>(*turn.weight);
        if (std::abs(after) >= std::abs(sum)) continue;
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
