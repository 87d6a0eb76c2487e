// SPDX-License-Identifier: Apache-2.0
// Reads a .tar.gz that nobody vouches for, entry by entry, within limits.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <vartml/result.h>

#include "lib/base/file.h"

namespace vartml::artifact {

// What a .tar.gz may ask of its reader. The writer keeps to it too.

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

// What the entries of a compiled model are called in the flat .tar.gz.

inline constexpr std::string_view program_section = ".vartml.program";
inline constexpr std::string_view weights_section = ".vartml.weights";

struct TarName {
    std::string file;
    std::string_view section;  // of an ELF file; "" where the entry is the whole file
};

// Where the entry with this name in the directory form lies in the .tar.gz; nothing for one that a
// flat archive has no place for.
std::optional<TarName> tar_name(std::string_view entry, std::string_view model_name);

// The file that describes the archive to other tools: NAME_mpk.json.
std::string mpk_name(std::string_view model_name);

// "3" of "vaiml_par_3" and of "vaiml_cpu_subgraph_3".
std::string_view partition_number(std::string_view partition_name);

// The refusal of an archive or, with a name, of an entry in it; `text` goes on after the name.
Error entry_error(const std::string& path, std::string_view entry, const std::string& text);

struct TarItem {
    std::string name;  // raw bytes
    uint64_t size_bytes = 0;
    bool is_file = true;     // a regular one
    std::string type_fault;  // "", or what it is instead of a regular file in plain ustar format:
                             // "is a symbolic link"
};

// Checks sizes, counts and the checksum of the gzip stream; names and contents are the caller's.
// Nothing is known to be whole before next() has given the end.
class TarStream {
public:
    // Errors: not_found and io with the system's reason, bad_model for what is no gzip file.
    static Result<std::unique_ptr<TarStream>> open(const std::string& path,
                                                   const TarLimits& limits = {});
    ~TarStream();
    // The next entry; nothing at the end of a good archive. What was not read of the last entry is
    // skipped.
    Result<std::optional<TarItem>> next();
    // The next piece of the entry, valid until the next call; empty at its end.
    Result<Bytes> data();

private:
    class Gunzip;
    class Tar;
    TarStream(const std::string& path, const TarLimits& limits,
              std::shared_ptr<const MappedFile> file);
    Error no_tar() const;
    Result<void> finish();

    const std::string path_;
    const TarLimits limits_;
    std::shared_ptr<const MappedFile> file_;
    std::unique_ptr<Gunzip> gunzip_;
    std::unique_ptr<Tar> tar_;  // reads from gunzip_, goes first
    size_t entries_ = 0;
    uint64_t position_ = 0;  // in the current entry
};

}  // namespace vartml::artifact
