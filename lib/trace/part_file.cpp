// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/part_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace vartml::profiling {

constexpr size_t block_bytes = size_t{64} * 1024;

Result<PartFile> PartFile::create(const std::string& path) {
    const std::string part = path + ".part";
    Fd fd(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!fd) return system_error(part, "create", errno);
    return PartFile(std::move(fd), path);
}

PartFile::~PartFile() {
    if (fd_) ::unlink(part().c_str());
}

void PartFile::write(std::string_view text) {
    if (block_.size() + text.size() < block_bytes) {
        block_ += text;
        return;
    }
    flush();
    const Bytes rest[] = {as_bytes(text)};
    if (written_) written_ = write_pieces(fd_.get(), path_, rest);
}

void PartFile::flush() {
    const Bytes rest[] = {as_bytes(block_)};
    if (written_) written_ = write_pieces(fd_.get(), path_, rest);
    block_.clear();
}

Result<void> PartFile::commit() {
    flush();
    // close() tells of a full disk where write() did not, as on network file systems.
    const int copy = written_ ? ::dup(fd_.get()) : -1;
    if (written_ && (copy < 0 || ::close(copy) != 0))
        written_ = system_error(path_, "write", errno);
    if (written_ && ::rename(part().c_str(), path_.c_str()) != 0)
        written_ = system_error(path_, "put the file in place", errno);
    if (!written_) return written_;
    fd_.reset();
    return {};
}

}  // namespace vartml::profiling
