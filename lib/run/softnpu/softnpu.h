// SPDX-License-Identifier: Apache-2.0
// The software NPU: executes NPU programs on the CPU through oneDNN and our own kernels.
#pragma once
#include "lib/run/exec/device.h"

namespace vartml::device {

// The one software NPU of this process.
Device& softnpu_device();

}  // namespace vartml::device
