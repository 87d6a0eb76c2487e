// SPDX-License-Identifier: Apache-2.0
#include "lib/run/memory/xrt_memory.h"

#include <dlfcn.h>

#include <atomic>
#include <string>

#include "lib/base/places.h"

namespace vartml::runtime {
namespace {

constexpr const char* library = "libxrt_coreutil.so.2";

Error no_module(const std::string& why) {
    return {ErrorCode::unsupported, "XRT cannot be used: " + why};
}

Result<const XrtModule*> load() {
    const std::string path = xrt_module();
    if (path.empty()) return no_module("this build has no module for it; build with -Dxrt=enabled");
    void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!module) {
        const char* const reason = dlerror();
        const std::string text = reason ? reason : path + ": cannot be loaded";
        if (text.starts_with(library))
            return no_module(text + "; install XRT, or source the setup.sh of its folder");
        return no_module(text + "; build this package with the XRT that is installed");
    }
    const auto* const table = static_cast<const XrtModule*>(dlsym(module, "vartml_xrt"));
    if (!table || table->version != XrtModule::current)
        return no_module(path + " is of another version of this package; install both anew");
    return table;
}

// Loaded once, and again after a failure: XRT may have been installed meanwhile. Never unloaded.
Result<const XrtModule*> module() {
    static std::atomic<const XrtModule*> loaded{nullptr};
    if (const XrtModule* const table = loaded.load(std::memory_order_acquire)) return table;
    auto table = load();
    if (table) loaded.store(*table, std::memory_order_release);
    return table;
}

}  // namespace

Result<std::shared_ptr<MemoryProvider>> xrt_memory(unsigned device_index) {
    auto table = module();
    if (!table) return table.error();
    return (*table)->open(device_index);
}

Result<std::shared_ptr<Memory>> wrap_xrt_bo(const void* bo) {
    void* const used = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    if (!used) return std::shared_ptr<Memory>();
    dlclose(used);
    auto table = module();
    if (!table) return table.error();
    return (*table)->wrap(bo);
}

}  // namespace vartml::runtime
