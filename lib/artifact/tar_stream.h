// SPDX-License-Identifier: Apache-2.0
// Reads a .tar.gz that nobody vouches for, entry by entry, within limits.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <vartml/result.h>

#include "lib/artifact/tar_limits.h"
#include "lib/common/file.h"

namespace vartml::artifact {

// The refusal of an archive or, with a name, of an entry in it; `text` goes on after the name.
Error rule_error(const std::string& path, std::string_view entry, const std::string& text,
                 const char* rule);

struct TarItem {
    std::string name;  // raw bytes
    uint64_t size_bytes = 0;
    bool is_file = true;     // a regular one
    std::string type_fault;  // "", or what it is instead of a regular file in plain ustar format:
                             // "is a symbolic link"
};

// Checks rules A1 and A2 and the checksum of the gzip stream; the other rules are the caller's.
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
