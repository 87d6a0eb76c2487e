// SPDX-License-Identifier: Apache-2.0
#include "lib/common/onnxruntime_program.h"

#include <cstdlib>
#include <filesystem>

#include "lib/common/installed.h"

namespace vartml {

std::string find_onnxruntime_program() {
    namespace fs = std::filesystem;
    constexpr const char* name = "vartml-onnxruntime";
    if (const char* given = std::getenv("VARTML_ONNXRUNTIME_CHILD"); given && *given) return given;
    std::error_code error;
    const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
    for (const fs::path& place : {folder / name, folder / ".." / "libexec" / name,
                                  fs::path(installed_onnxruntime_program())})
        if (fs::exists(place, error)) return place.string();
    return {};
}

}  // namespace vartml
