// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdlib>

// Whether QEMU's user emulation runs the test (`./dev --arch arm64`), for what it does otherwise
// than the kernel: the error of a program that cannot be run is lost, and memory has no limit.
inline bool is_emulated() {
    return std::getenv("QEMU_CPU") != nullptr;
}
