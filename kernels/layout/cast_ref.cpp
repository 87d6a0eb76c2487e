// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/layout/cast.h"

namespace vartml::kernels {
namespace {

template <class To, class From>
To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

uint16_t to_bf16(float x) {
    const auto bits = bits_as<uint32_t>(x);
    if (std::isnan(x)) return static_cast<uint16_t>((bits >> 16) | 0x0040);
    return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

uint16_t to_f16(float x) {
    const auto bits = bits_as<uint32_t>(x);
    const uint32_t sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
    uint32_t half;
    if (magnitude > 0x7f800000)
        half = 0x7e00 | ((magnitude >> 13) & 0x3ff);  // quiet NaN
    else if (magnitude >= 0x47800000)
        half = 0x7c00;  // 65536 and more
    else if (magnitude >= 0x38800000)
        half = (magnitude + 0xfff + ((magnitude >> 13) & 1) - 0x38000000) >> 13;
    else  // below 2^-14: adding 0.5 leaves steps of 2^-24, the unit of subnormal halves
        half = bits_as<uint32_t>(bits_as<float>(magnitude) + 0.5f) - 0x3f000000;
    return static_cast<uint16_t>(sign | half);
}

float from_f16(uint16_t h) {
    const uint32_t sign = (h & 0x8000u) << 16, magnitude = h & 0x7fffu, mantissa = h & 0x3ffu;
    uint32_t bits;
    if (magnitude > 0x7c00)
        bits = 0x7fc00000 | (mantissa << 13);
    else if (magnitude == 0x7c00)
        bits = 0x7f800000;
    else if (magnitude >= 0x400)
        bits = (magnitude << 13) + 0x38000000;
    else
        bits = bits_as<uint32_t>(static_cast<float>(mantissa) * 0x1p-24f);
    return bits_as<float>(sign | bits);
}

template <class Q>
Q quantise(float x, const Cast& cast) {
    if (std::isnan(x)) return static_cast<Q>(cast.zero_point);
    // Bounds are whole numbers, so that clamping may come before rounding.
    const auto low = static_cast<float>(std::numeric_limits<Q>::min() - cast.zero_point);
    const auto high = static_cast<float>(std::numeric_limits<Q>::max() - cast.zero_point);
    const float y = std::fmin(std::fmax(x / cast.scale, low), high);
    const float rounded = cast.truncate ? std::trunc(y) : std::nearbyint(y);
    return static_cast<Q>(static_cast<int32_t>(rounded) + cast.zero_point);
}

template <class Src, class Dst, class Function>
void each(const void* src, size_t src_stride, void* dst, size_t dst_stride, size_t rows,
          size_t count, size_t padding, Function function) {
    for (size_t r = 0; r < rows; ++r) {
        const auto* s = static_cast<const std::byte*>(src) + r * src_stride;
        auto* d = static_cast<std::byte*>(dst) + r * dst_stride;
        for (size_t i = 0; i < count; ++i) {
            Src x;
            std::memcpy(&x, s + i * sizeof x, sizeof x);
            const Dst y = function(x);
            std::memcpy(d + i * sizeof y, &y, sizeof y);
        }
        std::memset(d + count * sizeof(Dst), 0, padding * sizeof(Dst));
    }
}

}  // namespace

void cast_rows_ref(const Cast& cast, const void* src, size_t ss, void* dst, size_t ds, size_t rows,
                   size_t count, size_t padding) {
    const auto dequantise = [&](auto q) {
        return static_cast<float>(static_cast<int32_t>(q) - cast.zero_point) * cast.scale;
    };
    const auto same = [](auto x) { return x; };
    switch (cast.kind) {
        case CastKind::copy1:
            return each<uint8_t, uint8_t>(src, ss, dst, ds, rows, count, padding, same);
        case CastKind::copy2:
            return each<uint16_t, uint16_t>(src, ss, dst, ds, rows, count, padding, same);
        case CastKind::copy4:
            return each<uint32_t, uint32_t>(src, ss, dst, ds, rows, count, padding, same);
        case CastKind::copy8:
            return each<uint64_t, uint64_t>(src, ss, dst, ds, rows, count, padding, same);
        case CastKind::f32_bf16:
            return each<float, uint16_t>(src, ss, dst, ds, rows, count, padding, to_bf16);
        case CastKind::f32_f16:
            return each<float, uint16_t>(src, ss, dst, ds, rows, count, padding, to_f16);
        case CastKind::f32_i8:
            return each<float, int8_t>(src, ss, dst, ds, rows, count, padding,
                                       [&](float x) { return quantise<int8_t>(x, cast); });
        case CastKind::f32_u8:
            return each<float, uint8_t>(src, ss, dst, ds, rows, count, padding,
                                        [&](float x) { return quantise<uint8_t>(x, cast); });
        case CastKind::f32_i16:
            return each<float, int16_t>(src, ss, dst, ds, rows, count, padding,
                                        [&](float x) { return quantise<int16_t>(x, cast); });
        case CastKind::f32_u16:
            return each<float, uint16_t>(src, ss, dst, ds, rows, count, padding,
                                         [&](float x) { return quantise<uint16_t>(x, cast); });
        case CastKind::bf16_f32:
            return each<uint16_t, uint32_t>(src, ss, dst, ds, rows, count, padding, [](uint16_t x) {
                return static_cast<uint32_t>(x) << 16;
            });
        case CastKind::f16_f32:
            return each<uint16_t, float>(src, ss, dst, ds, rows, count, padding, from_f16);
        case CastKind::i8_f32:
            return each<int8_t, float>(src, ss, dst, ds, rows, count, padding, dequantise);
        case CastKind::u8_f32:
            return each<uint8_t, float>(src, ss, dst, ds, rows, count, padding, dequantise);
        case CastKind::i16_f32:
            return each<int16_t, float>(src, ss, dst, ds, rows, count, padding, dequantise);
        case CastKind::u16_f32:
            return each<uint16_t, float>(src, ss, dst, ds, rows, count, padding, dequantise);
    }
}

}  // namespace vartml::kernels
