// SPDX-License-Identifier: Apache-2.0
// What running a calibration set gave, kept in the user's cache folder.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include <vartml/result.h>

namespace vartml::tools {

// A file per result, for its user alone. It is there whole or not at all; one that is damaged or
// that others may have written is as none, and is made anew. Several processes may use a folder.
class CalibrationCache {
public:
    // `folder` "": nothing is kept.
    explicit CalibrationCache(std::string folder) : folder_(std::move(folder)) {}

    // What was kept under this key, which names all that the result depends on; else what make()
    // gives, which is kept unless it is larger than 512 MiB. A file that cannot be written is no
    // error. Removes files that nobody used for a month, and the oldest beyond 256 files or
    // 512 MiB. Errors: those of make().
    Result<std::string> get(std::string_view key,
                            const std::function<Result<std::string>()>& make) const;

private:
    std::string folder_;
};

}  // namespace vartml::tools
