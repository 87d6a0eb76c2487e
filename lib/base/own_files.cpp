// SPDX-License-Identifier: Apache-2.0
#include "lib/base/own_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace vartml {

namespace {
bool is_private(const struct stat& info) {
    return (info.st_uid == ::geteuid() || info.st_uid == 0) && (info.st_mode & 0022) == 0;
}
}  // namespace

bool is_private(int fd) {
    struct stat info{};
    return ::fstat(fd, &info) == 0 && is_private(info);
}

bool is_private_directory(const std::string& path) {
    struct stat info{};
    return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && is_private(info);
}

Result<void> make_own_directory(const std::string& path) {
    const std::string place = without_trailing_slashes(path);
    if (::mkdir(place.c_str(), own_folder) == 0) return {};
    if (errno == ENOENT && make_directories(parent_of(place)) &&
        ::mkdir(place.c_str(), own_folder) == 0)
        return {};
    return make_directories(place);  // it is there, or says why not
}

Result<void> replace_own_file(const std::string& path, std::span<const Bytes> pieces) {
    const auto write = [&](int fd) -> Result<void> {
        if (::fchmod(fd, own_file) != 0) return system_error(path, "keep it from others", errno);
        return write_pieces(fd, path, pieces);
    };
    return replace_file(path, write, Durability::none);
}

}  // namespace vartml
