// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/postprocess/scores.h"

namespace vartml::kernels {

namespace {

template <typename T>
T read(const void* element) {
    T value;
    std::memcpy(&value, element, sizeof value);
    return value;
}

float from_f16(uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float value = 0;
    if (exponent == 31) {
        value = fraction ? std::numeric_limits<float>::quiet_NaN()
                         : std::numeric_limits<float>::infinity();
    } else if (exponent == 0) {
        value = std::ldexp(static_cast<float>(fraction), -24);
    } else {
        value = std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
    }
    return bits & 0x8000 ? -value : value;
}

const uint8_t* at(const Scores& scores, size_t position, size_t class_id) {
    return static_cast<const uint8_t*>(scores.data) + position * scores.position_stride_bytes +
           class_id * scores.class_stride_bytes;
}

struct Limits {
    int32_t least, greatest;
};
Limits limits(StoredType type) {
    switch (type) {
        case StoredType::i8:
            return {-128, 127};
        case StoredType::u8:
            return {0, 255};
        case StoredType::i16:
            return {-32768, 32767};
        default:
            return {0, 65535};
    }
}

}  // namespace

float load(const Stored& stored, const void* element) {
    int32_t q = 0;
    switch (stored.type) {
        case StoredType::f32:
            return read<float>(element);
        case StoredType::bf16:
            return std::bit_cast<float>(static_cast<uint32_t>(read<uint16_t>(element)) << 16);
        case StoredType::f16:
            return from_f16(read<uint16_t>(element));
        case StoredType::i8:
            q = read<int8_t>(element);
            break;
        case StoredType::u8:
            q = read<uint8_t>(element);
            break;
        case StoredType::i16:
            q = read<int16_t>(element);
            break;
        case StoredType::u16:
            q = read<uint16_t>(element);
            break;
    }
    return static_cast<float>(q - stored.zero_point) * stored.scale;
}

size_t positions_above_ref(const Scores& scores, float threshold, uint32_t* found) {
    size_t count = 0;
    for (size_t position = 0; position < scores.positions; ++position) {
        bool take = false;
        for (size_t c = 0; c < scores.classes; ++c) {
            const float value = load(scores.stored, at(scores, position, c));
            take = take || value >= threshold || !std::isfinite(value);
        }
        if (take) found[count++] = static_cast<uint32_t>(position);
    }
    return count;
}

BestClass best_class(const Scores& scores, size_t position) {
    BestClass best{0, load(scores.stored, at(scores, position, 0)), true};
    best.finite = std::isfinite(best.score);
    for (size_t c = 1; c < scores.classes; ++c) {
        const float value = load(scores.stored, at(scores, position, c));
        best.finite = best.finite && std::isfinite(value);
        if (value > best.score) {
            best.score = value;
            best.class_id = static_cast<int32_t>(c);
        }
    }
    return best;
}

int32_t least_above(const Stored& stored, float threshold) {
    auto [low, high] = limits(stored.type);
    ++high;               // none
    while (low < high) {  // the real value grows with q: the first q that passes, by halving
        const int32_t middle = low + (high - low) / 2;
        const float value = static_cast<float>(middle - stored.zero_point) * stored.scale;
        if (value >= threshold) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

}  // namespace vartml::kernels
