// SPDX-License-Identifier: Apache-2.0
// Weights and rounding that the resampling operators share.
#pragma once
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "lib/graph/elements.h"

namespace vartml::cpu {

// The piecewise cubic of Keys, `a` being its free coefficient, at a distance from the centre.
inline double cubic_weight(double distance, double a) {
    const double x = std::fabs(distance);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    return 0;
}

// A blend as an element. Integers drop the fraction; weights that miss a sum of one by the
// rounding of their own do not cost a whole unit.
template <typename T>
T from_blend(double blend) {
    if constexpr (std::is_integral_v<T> || std::is_same_v<T, graph::Bool>) {
        const double whole = std::nearbyint(blend);
        return graph::convert<T>(std::fabs(blend - whole) < 1e-5 ? whole : blend);
    } else {
        return graph::convert<T>(blend);
    }
}

}  // namespace vartml::cpu
