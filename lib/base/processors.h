// SPDX-License-Identifier: Apache-2.0
// What <vartml/processors.h> says, of another root of files.
#pragma once
#include <string>

#include <vartml/processors.h>

namespace vartml {

// `root` is put before /proc and before where control groups are mounted; "": the system's.
double processor_quota_in(const std::string& root);
double processor_throttled_s_in(const std::string& root);

}  // namespace vartml
