// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4), for signatures and names of contents.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace vartml {

class Sha256 {
public:
    using Digest = std::array<uint8_t, 32>;
    void update(std::span<const std::byte> bytes);
    // Ends the message; the object must not be used after it.
    Digest finish();

private:
    std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<uint8_t, 64> block_{};
    uint64_t size_bytes_ = 0;
};

Sha256::Digest sha256(std::span<const std::byte> bytes);
// Lower-case hexadecimal digits, two per byte.
std::string to_hex(std::span<const uint8_t> bytes);

}  // namespace vartml
