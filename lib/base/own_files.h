// SPDX-License-Identifier: Apache-2.0
// What a process keeps for its user alone, in places that others may know: nobody else reads or
// writes it, whatever the umask, and what somebody else may have put there is told apart.
#pragma once
#include <span>
#include <string>

#include "lib/base/file.h"

namespace vartml {

inline constexpr unsigned own_file = 0600, own_folder = 0700;  // modes

// Whether nobody but this user and root can have written it.
bool is_private(int fd);
// The same of a directory, which is no symbolic link.
bool is_private_directory(const std::string& path);

// Creates the directory where it is missing, for this user alone; its parents as make_directories()
// does.
Result<void> make_own_directory(const std::string& path);
// replace_file() for this user alone; what a crash of the system leaves may hold anything.
Result<void> replace_own_file(const std::string& path, std::span<const Bytes> pieces);

}  // namespace vartml
