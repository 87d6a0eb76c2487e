// SPDX-License-Identifier: Apache-2.0
// Where things are kept that can be made again.
#pragma once
#include <string>

namespace vartml {

// `vartml` in the user's cache folder ($XDG_CACHE_HOME, else ~/.cache), which need not exist; ""
// where neither variable holds an absolute path.
std::string user_cache_folder();

}  // namespace vartml
