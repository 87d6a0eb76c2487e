// SPDX-License-Identifier: Apache-2.0
// Memory for tensors, and the device nodes that pipelines use: which there are, and whether this
// user may open them.
#include <dirent.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "lib/common/file.h"
#include "lib/doctor/checks.h"

namespace vartml::doctor {
namespace {

struct Kind {
    const char* folder;  // below /dev; "" is itself
    const char* prefix;
    const char* what;
    const char* group;  // whose members may open it
};
constexpr Kind kinds[] = {
    {"", "video", "cameras and codecs of V4L2", "video"},
    {"dri", "renderD", "GPUs", "render"},
    {"accel", "accel", "accelerators", "render"},
    {"dma_heap", "", "heaps of DMA-BUFs", "video"},
};

std::vector<std::string> nodes_of(const std::string& folder, const std::string& prefix) {
    std::vector<std::string> nodes;
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), &::closedir);
    while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
        const std::string name = entry->d_name;
        if (name[0] != '.' && name.starts_with(prefix)) nodes.push_back(folder + '/' + name);
    }
    std::ranges::sort(nodes);
    return nodes;
}

std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
}

}  // namespace

void check_memory(Examination& e) {
    const Fd memory(::memfd_create("vartml-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!memory)
        return e.problem(
            std::string("tensors cannot be made: memfd_create: ") + std::strerror(errno),
            "allow memfd_create in the sandbox or container (seccomp)");
    const std::string& path = e.request.surroundings.udmabuf;
    if (::access(path.c_str(), R_OK | W_OK) == 0)
        return e.fine("tensors can be exported as DMA-BUFs through " + path);
    const int reason = errno;
    e.note("tensors are exported as memfds, which GPUs and displays cannot import: " + path + ": " +
               std::strerror(reason),
           reason == EACCES ? "sudo setfacl -m u:$(id -un):rw " + path : "sudo modprobe udmabuf");
}

void check_nodes(Examination& e) {
    for (const Kind& kind : kinds) {
        const std::string folder = e.request.surroundings.dev_folder +
                                   (*kind.folder ? '/' + std::string(kind.folder) : "");
        std::vector<std::string> usable, closed;
        for (const std::string& node : nodes_of(folder, kind.prefix))
            (::access(node.c_str(), R_OK | W_OK) == 0 ? usable : closed).push_back(node);
        if (usable.empty() && closed.empty())
            e.fine("no " + std::string(kind.what) + " (" + folder + '/' + kind.prefix + "*)");
        if (!usable.empty()) e.fine(std::string(kind.what) + ": " + joined(usable));
        if (!closed.empty())
            e.note(
                std::string(kind.what) + " that this user may not open: " + joined(closed),
                std::string("sudo usermod -aG ") + kind.group + " $(id -un)   (then log in again)");
    }
}

}  // namespace vartml::doctor
