// SPDX-License-Identifier: Apache-2.0
// The last bytes of a .rai.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

namespace vartml::artifact {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

inline constexpr size_t min_rai_bytes = 128;
inline constexpr uint32_t max_manifest_bytes = 64u << 20;  // without the size prefix
inline constexpr char footer_magic[8] = {'V', 'R', 'A', '1', 'E', 'N', 'D', '\0'};

struct Footer {
    uint64_t file_size = 0;
    uint32_t manifest_size = 0;    // as the size prefix says
    uint32_t manifest_crc32c = 0;  // of prefix and manifest
    uint64_t reserved = 0;
    char magic[8] = {};
};
static_assert(sizeof(Footer) == 32);

// "0x1A2B3C4D"
inline std::string hex(uint32_t value) {
    constexpr char digits[] = "0123456789ABCDEF";
    std::string text = "0x";
    for (int shift = 28; shift >= 0; shift -= 4) text += digits[value >> shift & 15];
    return text;
}

}  // namespace vartml::artifact
