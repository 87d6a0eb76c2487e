// SPDX-License-Identifier: Apache-2.0
// Values of a model as bytes of pixels.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace vartml::kernels {

// byte = base + round(min(max((value - zero) * factor, 0), span)), halves to even; base + span is
// at most 255. What is not finite gives base.
struct ByteScale {
    float zero = 0, factor = 1, span = 255;
    uint8_t base = 0;
};

// Writes `count` bytes. Gives how many of the values are not finite. Every step is rounded to
// float, so that every instruction set gives the bytes of to_bytes_ref. Nothing is demanded of
// alignment.
size_t to_bytes(const float* values, size_t count, const ByteScale& scale, uint8_t* bytes);
size_t to_bytes_ref(const float* values, size_t count, const ByteScale& scale, uint8_t* bytes);

// The same of three planes, as pixels of three bytes.
size_t to_pixels(const std::array<const float*, 3>& planes, size_t count,
                 const std::array<ByteScale, 3>& scales, uint8_t* pixels);
size_t to_pixels_ref(const std::array<const float*, 3>& planes, size_t count,
                     const std::array<ByteScale, 3>& scales, uint8_t* pixels);

// The least and the greatest of the finite values; +infinity and -infinity where there are none.
struct ValueRange {
    float least, greatest;
};
ValueRange range_of(const float* values, size_t count);
ValueRange range_of_ref(const float* values, size_t count);

}  // namespace vartml::kernels
