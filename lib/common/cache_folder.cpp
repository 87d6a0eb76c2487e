// SPDX-License-Identifier: Apache-2.0
#include "lib/common/cache_folder.h"

#include <cstdlib>

namespace vartml {

std::string user_cache_folder() {
    // A relative path is to be ignored (XDG Base Directory Specification).
    const char* const cache = std::getenv("XDG_CACHE_HOME");
    if (cache && cache[0] == '/') return std::string(cache) + "/vartml";
    const char* const home = std::getenv("HOME");
    if (home && home[0] == '/') return std::string(home) + "/.cache/vartml";
    return {};
}

}  // namespace vartml
