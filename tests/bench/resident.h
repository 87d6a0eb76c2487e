// SPDX-License-Identifier: Apache-2.0
// How much memory a peer needed.
#pragma once
#include <cstddef>
#include <fstream>
#include <string>

// The most memory of this process that was resident at the same time, in bytes: the line VmHWM of
// the kernel's account. Pages of files count, also those that other processes have too.
inline size_t most_resident() {
    std::ifstream status("/proc/self/status");
    std::string word;
    size_t kilobytes = 0;
    while (status >> word)
        if (word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024;
    return 0;
}
