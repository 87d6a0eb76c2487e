// SPDX-License-Identifier: Apache-2.0
// Checksums of bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace vartml {

// CRC-32 (ISO-HDLC), the one of zlib and gzip: for files that scripts of others check. Given the
// checksum of what comes before the bytes, that of both together.
uint32_t crc32(std::span<const std::byte> bytes, uint32_t before = 0);

// CRC-32C (Castagnoli, RFC 3720 B.4), the checksum of the entries of a compiled model; the same
// way.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);
// The same without the processor's instructions; the oracle of tests.
uint32_t crc32c_ref(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace vartml
