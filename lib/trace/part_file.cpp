// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/part_file.h"

#include <unistd.h>

#include <cerrno>

namespace vartml::profiling {

constexpr size_t block_bytes = size_t{64} * 1024;

Result<PartFile> PartFile::create(const std::string& path) {
    auto file = StagedFile::create(path);
    if (!file) return file.error();
    return PartFile(std::move(*file), path);
}

void PartFile::write(std::string_view text) {
    if (block_.size() + text.size() < block_bytes) {
        block_ += text;
        return;
    }
    flush();
    const Bytes rest[] = {as_bytes(text)};
    if (written_) written_ = write_pieces(file_.fd(), path_, rest);
}

void PartFile::flush() {
    const Bytes rest[] = {as_bytes(block_)};
    if (written_) written_ = write_pieces(file_.fd(), path_, rest);
    block_.clear();
}

Result<void> PartFile::commit() {
    flush();
    // close() tells of a full disk where write() did not, as on network file systems.
    const int copy = written_ ? ::dup(file_.fd()) : -1;
    if (written_ && (copy < 0 || ::close(copy) != 0))
        written_ = system_error(path_, "write", errno);
    return written_ ? file_.commit(Durability::none) : written_;
}

}  // namespace vartml::profiling
