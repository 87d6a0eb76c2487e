// SPDX-License-Identifier: Apache-2.0
// From a .tar.gz to files in a folder, under the rules for archives that nobody vouches for.
#pragma once
#include <map>
#include <string>

#include <vartml/result.h>

#include "lib/base/file.h"
#include "lib/model/tar_stream.h"

namespace vartml::artifact {

// Sizes of the entries of an archive by name.
using TarListing = std::map<std::string, uint64_t>;

struct UnpackOptions {
    bool programs = true;  // false: programs and weights are checked as entries, but not written
    TarLimits limits = {};
};

// Writes the entries of a .tar.gz of ours into `folder`, an open directory that nobody else writes
// to, under their flat names, once name, type, size and JSON are checked. On an error the files
// written so far are the caller's to remove. Errors: not_found and io with the system's reason,
// bad_model.
Result<TarListing> unpack_tar(const std::string& path, const Fd& folder,
                              const UnpackOptions& options = {});

// The bytes of model.vmf in the archive; the reading ends there. Errors: as above.
Result<std::string> peek_manifest(const std::string& path);

}  // namespace vartml::artifact
