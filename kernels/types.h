// SPDX-License-Identifier: Apache-2.0
// Small plain structs that kernels share.
#pragma once
#include <cstddef>
#include <cstdint>

namespace vartml::kernels {

// Height, width and channels of one picture or feature map, in elements.
struct Extent {
    uint32_t height = 0, width = 0, channels = 0;
    bool operator==(const Extent&) const = default;
};

// A bfloat16 value as its bits; arithmetic happens in float.
struct bf16 {
    uint16_t bits;
    bool operator==(const bf16&) const = default;
};

// An IEEE half-precision value as its bits.
struct fp16 {
    uint16_t bits;
    bool operator==(const fp16&) const = default;
};

// What a picture is made of; u8: codes.
enum class Element : uint8_t { f32, bf16, u8 };

inline size_t size_of(Element element) {
    constexpr size_t sizes[] = {sizeof(float), sizeof(bf16), sizeof(uint8_t)};
    return sizes[static_cast<size_t>(element)];
}

}  // namespace vartml::kernels
