// SPDX-License-Identifier: Apache-2.0
#include "lib/base/checksum.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string_view>
#include <vector>

namespace vartml {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> first, size_t size, int step = 0) {
    std::vector<std::byte> bytes(size);
    int value = *first.begin();
    for (std::byte& b : bytes) b = static_cast<std::byte>(value), value += step;
    return bytes;
}

TEST(Crc32c, GivesTheValuesOfRfc3720) {
    // RFC 3720, B.4; the last is the check value of the CRC catalogue.
    EXPECT_EQ(crc32c(bytes_of({0}, 32)), 0x8a9136aau);
    EXPECT_EQ(crc32c(bytes_of({0xff}, 32)), 0x62a8ab43u);
    EXPECT_EQ(crc32c(bytes_of({0}, 32, 1)), 0x46dd794eu);
    EXPECT_EQ(crc32c(bytes_of({31}, 32, -1)), 0x113fdb5cu);
    EXPECT_EQ(crc32c(std::as_bytes(std::span(std::string_view("123456789")))), 0xe3069283u);
    EXPECT_EQ(crc32c({}), 0u);
}

TEST(Crc32c, EqualsTheReferenceAtEverySizeAndStart) {
    std::mt19937 random(1);
    std::vector<std::byte> bytes(100'000);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    // Around a word, and around one and several blocks of three stretches of 4096.
    for (const size_t size : {0, 1, 7, 8, 9, 63, 4095, 12287, 12288, 12289, 24577, 50000, 99990})
        for (const size_t start : {0, 1, 3, 7}) {
            const auto part = std::span(bytes).subspan(start, size);
            EXPECT_EQ(crc32c(part), crc32c_ref(part)) << size << " bytes from " << start;
        }
}

TEST(Crc32c, ContinuesAcrossPieces) {
    const auto bytes = bytes_of({3}, 40'000, 7);
    const std::span<const std::byte> all = bytes;
    for (const size_t cut : {0, 1, 12288, 39'999, 40'000})
        EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c(all));
}

// The check value is that of the catalogue of parametrised CRC algorithms (CRC-32/ISO-HDLC).
TEST(Crc32, IsTheOneOfZlibAndContinuesAcrossPieces) {
    const auto digits = std::as_bytes(std::span(std::string_view("123456789")));
    EXPECT_EQ(crc32(digits), 0xcbf43926u);
    EXPECT_EQ(crc32({}), 0u);
    for (size_t cut = 0; cut <= digits.size(); ++cut)
        EXPECT_EQ(crc32(digits.subspan(cut), crc32(digits.first(cut))), 0xcbf43926u);
}

}  // namespace
}  // namespace vartml
