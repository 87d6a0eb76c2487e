// SPDX-License-Identifier: Apache-2.0
// One frame through an executable, without the runner around it.
#pragma once
#include <span>

#include "lib/run/exec/device.h"

namespace vartml::test {

inline Result<void> run_once(device::Executable& executable, std::span<const void* const> inputs,
                             std::span<void* const> outputs, unsigned slot = 0) {
    const device::Frame frame{inputs, outputs};
    return executable.run({.frames = {&frame, 1}, .slot = slot});
}

}  // namespace vartml::test
