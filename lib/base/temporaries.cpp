// SPDX-License-Identifier: Apache-2.0
#include "lib/base/temporaries.h"

#include <cstdio>
#include <mutex>
#include <set>

#include "lib/base/file.h"

namespace vartml {

namespace {
struct Known {
    std::mutex mutex;
    std::set<std::string> paths;
};
// Never destroyed: threads may outlive main.
Known& known() {
    static Known* const all = new Known;
    return *all;
}
}  // namespace

MakingTemporary::MakingTemporary() : lock_(known().mutex) {}

void MakingTemporary::made(const std::string& path) noexcept {
    try {
        known().paths.insert(path);
    } catch (...) {  // no memory
    }
}

void forget_temporary(const std::string& path) noexcept {
    const std::lock_guard lock(known().mutex);
    known().paths.erase(path);
}

std::unique_lock<std::mutex> remove_temporaries() noexcept {
    std::unique_lock lock(known().mutex);
    try {
        for (const std::string& path : known().paths) {
            // The name goes first, in one step: either it was put in place before, or it never
            // will be.
            const std::string gone = path + "-gone";
            if (std::rename(path.c_str(), gone.c_str()) == 0) (void)remove_tree(gone);
        }
        known().paths.clear();
    } catch (...) {  // no memory: the next start takes them away
    }
    return lock;
}

}  // namespace vartml
