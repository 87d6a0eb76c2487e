// SPDX-License-Identifier: Apache-2.0
// An output file that is `<path>.part` until it is complete.
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
    PartFile(PartFile&& other) noexcept = default;
    PartFile& operator=(PartFile&&) = delete;
    ~PartFile();
    // A failed write is kept for commit().
    void write(std::string_view text);
    void write(Bytes bytes) { write(as_text(bytes)); }
    // Gives the file its name, in place of a file that has it.
    Result<void> commit();

private:
    PartFile(Fd fd, const std::string& path) : fd_(std::move(fd)), path_(path) {}
    void flush();
    std::string part() const { return path_ + ".part"; }

    Fd fd_;
    std::string path_, block_;
    Result<void> written_;
};

}  // namespace vartml::profiling
