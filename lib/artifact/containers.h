// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a compiled model's entries come from: each container shows them alike.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/artifact/manifest.h"
#include "lib/common/file.h"

namespace vartml::artifact {

// An opened container: the manifest is checked (10.3, 1 to 5), the entries are not read yet.
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

}  // namespace vartml::artifact
