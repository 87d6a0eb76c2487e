// SPDX-License-Identifier: Apache-2.0
// What a .tar.gz may ask of its reader, rules A1 and A2. The writer keeps to it too.
#pragma once
#include <cstddef>
#include <cstdint>

namespace vartml::artifact {

struct TarLimits {
    uint64_t compressed_bytes = uint64_t{4} << 30;
    uint64_t total_bytes = uint64_t{8} << 30;
    uint64_t entry_bytes = uint64_t{4} << 30;
    uint64_t expansion = 200;                            // times the size of the file,
    uint64_t expansion_free_bytes = uint64_t{64} << 20;  // once this much is out
    size_t entries = 1024;

    bool expands_too_much(uint64_t out_bytes, uint64_t file_bytes) const {
        return out_bytes > expansion_free_bytes && out_bytes / expansion > file_bytes;
    }
};

}  // namespace vartml::artifact
