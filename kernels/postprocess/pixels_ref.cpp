// SPDX-License-Identifier: Apache-2.0
#include "kernels/postprocess/pixels.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace vartml::kernels {

namespace {

uint8_t to_byte(float value, const ByteScale& s, size_t& not_finite) {
    if (!std::isfinite(value)) {
        ++not_finite;
        return s.base;
    }
    const float difference = value - s.zero;
    const float scaled = difference * s.factor;
    const float clamped = std::min(std::max(scaled, 0.f), s.span);
    return static_cast<uint8_t>(s.base + static_cast<int>(std::nearbyint(clamped)));
}

}  // namespace

size_t to_bytes_ref(const float* values, size_t count, const ByteScale& scale, uint8_t* bytes) {
    size_t not_finite = 0;
    for (size_t i = 0; i < count; ++i) bytes[i] = to_byte(values[i], scale, not_finite);
    return not_finite;
}

size_t to_pixels_ref(const std::array<const float*, 3>& planes, size_t count,
                     const std::array<ByteScale, 3>& scales, uint8_t* pixels) {
    size_t not_finite = 0;
    for (size_t i = 0; i < count; ++i) {
        for (size_t c = 0; c < 3; ++c)
            pixels[3 * i + c] = to_byte(planes[c][i], scales[c], not_finite);
    }
    return not_finite;
}

ValueRange range_of_ref(const float* values, size_t count) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    ValueRange range{infinity, -infinity};
    for (size_t i = 0; i < count; ++i) {
        if (!std::isfinite(values[i])) continue;
        range.least = std::min(range.least, values[i]);
        range.greatest = std::max(range.greatest, values[i]);
    }
    return range;
}

}  // namespace vartml::kernels
