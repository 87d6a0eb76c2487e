// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a compiled model's entries come from: each container shows them alike.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/base/file.h"
#include "lib/model/manifest.h"

namespace vartml::artifact {

// An opened container: the manifest is checked, the entries are not read yet.
class Container {
public:
    virtual ~Container() = default;
    // The bytes of an entry, checksum verified. They live as long as the container.
    // Errors: bad_model, io.
    virtual Result<Bytes> entry(size_t blob) = 0;

    Manifest manifest;
    std::string format;

protected:
    // `where` names the entry in the sentence.
    static Result<Bytes> verified(const MappedFile& file, size_t offset, size_t size,
                                  const Blob& blob, const std::string& where);
};

Result<std::shared_ptr<Container>> open_rai(const std::string& path);
Result<std::shared_ptr<Container>> open_directory(const std::string& path);
// Unpacks it as `options` say.
Result<std::shared_ptr<Container>> open_tar(const std::string& path, const ReadOptions& options);

// Finds and opens the container at `path`.
Result<std::shared_ptr<Container>> open_container(const std::string& path,
                                                  const ReadOptions& options = {});

// Whether a directory may be put at `path`: nothing is there, or a directory that vartml made.
// Errors: invalid_argument, io.
Result<void> check_replaceable(const std::string& path);

// The last bytes of a .rai.

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
