// SPDX-License-Identifier: Apache-2.0
#include "lib/base/places.h"

#include <cstdlib>
#include <filesystem>
#include <utility>

namespace vartml {

std::string vartml_program() {
    const char* const chosen = std::getenv("VARTML_COMPILER");
    return chosen && *chosen ? chosen : std::string(installed_vartml_program());
}

std::string xrt_module() {
    const char* const chosen = std::getenv("VARTML_XRT_MODULE");
    return chosen && *chosen ? chosen : std::string(installed_xrt_module());
}

std::string user_cache_folder() {
    // A relative path is to be ignored (XDG Base Directory Specification).
    const char* const cache = std::getenv("XDG_CACHE_HOME");
    if (cache && cache[0] == '/') return std::string(cache) + "/vartml";
    const char* const home = std::getenv("HOME");
    if (home && home[0] == '/') return std::string(home) + "/.cache/vartml";
    return {};
}

std::string with_way_out(std::string onnxruntime_says) {
    constexpr const char* lacking[] = {
        "NOT_IMPLEMENTED",
        "Could not find an implementation for",
        "ONNX Runtime only *guarantees* support for models stamped with",
        "Unsupported model IR version",
    };
    for (const char* words : lacking) {
        if (onnxruntime_says.find(words) == onnxruntime_says.npos) continue;
        return std::move(onnxruntime_says) +
               "; another build of ONNX Runtime may have it (pip: onnxruntime; npm: "
               "onnxruntime-node): name its library in the environment variable "
               "VARTML_ONNXRUNTIME";
    }
    return onnxruntime_says;
}

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
