// SPDX-License-Identifier: Apache-2.0
// XRT: absent, too old for its memory to be used, or fine. Read from the name of its library, so
// that nothing of it is loaded.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "lib/doctor/checks.h"

namespace vartml::doctor {
namespace {

namespace fs = std::filesystem;

constexpr int oldest_major = 2, oldest_minor = 16;

struct Xrt {
    std::string file;
    int major = 0, minor = 0;
};

std::vector<std::string> usual_folders() {
    std::vector<std::string> folders;
    // given: XRT's setup.sh sets it.
    if (const char* root = std::getenv("XILINX_XRT"); root && *root)
        folders.push_back(std::string(root) + "/lib");
    for (const char* folder : {"/opt/xilinx/xrt/lib", "/usr/local/lib", "/usr/lib",
                               "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"})
        folders.emplace_back(folder);
    return folders;
}

std::optional<Xrt> find_xrt(const std::string& folder) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string();
        Xrt xrt{.file = entry.path().string()};
        // Links of shorter versions lead to the file itself.
        if (std::sscanf(name.c_str(), "libxrt_coreutil.so.%d.%d", &xrt.major, &xrt.minor) == 2)
            return xrt;
    }
    return std::nullopt;
}

}  // namespace

void check_xrt(Examination& e) {
    std::vector<std::string> folders = e.request.surroundings.xrt_folders;
    if (folders.empty()) folders = usual_folders();
    for (const std::string& folder : folders) {
        const auto xrt = find_xrt(folder);
        if (!xrt) continue;
        const std::string version = std::to_string(xrt->major) + '.' + std::to_string(xrt->minor);
        e.report.facts["xrt"] = version;
        if (std::pair(xrt->major, xrt->minor) >= std::pair(oldest_major, oldest_minor))
            return e.fine("XRT " + version + " (" + xrt->file + ")");
        return e.problem("XRT " + version + " is too old (" + xrt->file +
                             "), its memory can be used from 2.16 on",
                         "install XRT 2.16 or later, or remove the old one: dpkg -S " + xrt->file);
    }
    e.fine("XRT is not installed; only boards that share memory with it need it");
}

}  // namespace vartml::doctor
