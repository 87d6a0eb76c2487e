// SPDX-License-Identifier: Apache-2.0
// An output file that has another name until it is complete.
#pragma once
#include <string>
#include <string_view>

#include <vartml/result.h>

#include "lib/base/file.h"

namespace vartml::profiling {

// Text goes out in blocks, so that any size takes the same memory. What was not committed is
// removed by the destructor.
class PartFile {
public:
    static Result<PartFile> create(const std::string& path);
    // A failed write is kept for commit().
    void write(std::string_view text);
    void write(Bytes bytes) { write(as_text(bytes)); }
    // Gives the file its name, in place of a file that has it.
    Result<void> commit();

private:
    PartFile(StagedFile file, const std::string& path) : file_(std::move(file)), path_(path) {}
    void flush();

    StagedFile file_;
    std::string path_, block_;
    Result<void> written_;
};

}  // namespace vartml::profiling
