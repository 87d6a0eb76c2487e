// SPDX-License-Identifier: Apache-2.0
#include "lib/base/checksum.h"

#include <zlib.h>
#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace vartml {
namespace {

constexpr uint32_t castagnoli = 0x82f63b78;  // reflected

constexpr auto table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t i = 0; i < 256; ++i) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) ? castagnoli : 0);
        t[i] = c;
    }
    return t;
}();

uint32_t by_table(const std::byte* p, size_t n, uint32_t c) {
    for (; n > 0; --n, ++p) c = table[(c ^ static_cast<uint8_t>(*p)) & 0xff] ^ (c >> 8);
    return c;
}

#if defined(__x86_64__) || defined(__aarch64__)

#if defined(__x86_64__)
#define VARTML_CRC_TARGET __attribute__((target("sse4.2")))
bool has_instructions() {
    return __builtin_cpu_supports("sse4.2");
}
VARTML_CRC_TARGET inline uint64_t step(uint64_t c, uint64_t word) {
    return _mm_crc32_u64(c, word);
}
#else
#define VARTML_CRC_TARGET __attribute__((target("+crc")))
bool has_instructions() {
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
}
VARTML_CRC_TARGET inline uint64_t step(uint64_t c, uint64_t word) {
    return __crc32cd(static_cast<uint32_t>(c), word);
}
#endif

inline uint64_t word_at(const std::byte* p) {
    uint64_t word;
    std::memcpy(&word, p, sizeof word);
    return word;
}

// The instruction takes three cycles but can start every cycle, so three stretches of a block run
// side by side. Their checksums are joined by shifting the earlier ones over the zeros that stand
// for the later stretches.
constexpr size_t stretch = 4096;

// Row of the linear map "append `stretch` zero bytes" for each byte of the checksum.
const auto& shift_table() {
    static const auto shift = [] {
        std::array<std::array<uint32_t, 256>, 4> t{};
        std::array<uint32_t, 32> image{};
        for (size_t bit = 0; bit < 32; ++bit) {
            uint32_t c = 1u << bit;
            for (size_t i = 0; i < stretch; ++i) c = table[c & 0xff] ^ (c >> 8);
            image[bit] = c;
        }
        for (size_t byte = 0; byte < 4; ++byte)
            for (size_t v = 0; v < 256; ++v)
                for (size_t bit = 0; bit < 8; ++bit)
                    if (v >> bit & 1) t[byte][v] ^= image[byte * 8 + bit];
        return t;
    }();
    return shift;
}

VARTML_CRC_TARGET uint32_t by_instruction(const std::byte* p, size_t n, uint32_t before) {
    uint64_t c = before;
    if (n >= 3 * stretch) {
        const auto& shift = shift_table();
        const auto over = [&](uint64_t x) -> uint64_t {
            return shift[0][x & 0xff] ^ shift[1][x >> 8 & 0xff] ^ shift[2][x >> 16 & 0xff] ^
                   shift[3][x >> 24 & 0xff];
        };
        for (; n >= 3 * stretch; n -= 3 * stretch, p += 3 * stretch) {
            uint64_t c1 = 0, c2 = 0;
            for (size_t i = 0; i < stretch; i += 8) {
                c = step(c, word_at(p + i));
                c1 = step(c1, word_at(p + stretch + i));
                c2 = step(c2, word_at(p + 2 * stretch + i));
            }
            c = over(over(c) ^ c1) ^ c2;
        }
    }
    for (; n >= 8; n -= 8, p += 8) c = step(c, word_at(p));
    return by_table(p, n, static_cast<uint32_t>(c));
}

#endif

}  // namespace

uint32_t crc32c_ref(std::span<const std::byte> bytes, uint32_t before) {
    return ~by_table(bytes.data(), bytes.size(), ~before);
}

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
#if defined(__x86_64__) || defined(__aarch64__)
    static const bool fast = has_instructions();
    if (fast) return ~by_instruction(bytes.data(), bytes.size(), ~before);
#endif
    return crc32c_ref(bytes, before);
}

uint32_t crc32(std::span<const std::byte> bytes, uint32_t before) {
    if (bytes.empty()) return before;
    return static_cast<uint32_t>(
        ::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace vartml
