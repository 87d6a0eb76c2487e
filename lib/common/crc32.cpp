// SPDX-License-Identifier: Apache-2.0
#include "lib/common/crc32.h"

#include <array>
#include <bit>
#include <cstring>

namespace vartml {
namespace {

constexpr uint32_t polynomial = 0xedb88320;  // reflected
constexpr size_t word_bytes = 8;

// tables[k][b]: the checksum of byte b followed by k zero bytes, so that the eight bytes of a word
// are looked up independently of one another.
constexpr auto tables = [] {
    std::array<std::array<uint32_t, 256>, word_bytes> t{};
    for (uint32_t i = 0; i < 256; ++i) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) ? polynomial : 0);
        t[0][i] = c;
    }
    for (size_t k = 1; k < word_bytes; ++k)
        for (size_t i = 0; i < 256; ++i) t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 0xff];
    return t;
}();

}  // namespace

uint32_t crc32(std::span<const std::byte> bytes, uint32_t before) {
    static_assert(std::endian::native == std::endian::little);
    uint32_t c = ~before;
    const std::byte* p = bytes.data();
    size_t n = bytes.size();
    for (; n >= word_bytes; n -= word_bytes, p += word_bytes) {
        uint64_t word;
        std::memcpy(&word, p, sizeof word);
        word ^= c;
        c = 0;
        for (size_t k = 0; k < word_bytes; ++k)
            c ^= tables[word_bytes - 1 - k][(word >> (8 * k)) & 0xff];
    }
    for (; n > 0; --n, ++p) c = tables[0][(c ^ static_cast<uint8_t>(*p)) & 0xff] ^ (c >> 8);
    return ~c;
}

}  // namespace vartml
