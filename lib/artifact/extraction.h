// SPDX-License-Identifier: Apache-2.0
// The folder that a .tar.gz is unpacked into: fresh, for this user alone, gone after a failure.
#pragma once
#include <optional>
#include <string>

#include <vartml/result.h>

#include "lib/artifact/compiled_model.h"
#include "lib/common/file.h"

namespace vartml::artifact {

// Rule A12. The destructor removes the folder unless it was put in place to stay.
class ExtractionFolder {
public:
    // Errors: io; invalid_argument where a folder that is to stay would replace something that is
    // not ours.
    static Result<ExtractionFolder> create(const Extraction& extraction);
    ExtractionFolder(ExtractionFolder&& other) noexcept;
    ExtractionFolder& operator=(ExtractionFolder&&) = delete;
    ~ExtractionFolder();

    const std::string& path() const { return path_; }
    const Fd& fd() const { return fd_; }  // of the open folder
    // Puts a folder that is to stay in its place; others stay where they are.
    Result<void> commit();

private:
    ExtractionFolder() = default;
    std::string path_;
    std::optional<StagedDirectory> staged_;  // of a folder that is to stay
    Fd fd_;
};

// Whether `path` is a directory of this user that nobody else can write to.
bool is_private_directory(const std::string& path);

}  // namespace vartml::artifact
