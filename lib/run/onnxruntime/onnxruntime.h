// SPDX-License-Identifier: Apache-2.0
// What computes the partitions of ONNX Runtime: a child process per partition (protocol.h).
#pragma once
#include "lib/run/exec/device.h"

namespace vartml::device {

// Runs programs of the target onnxruntime-1. Not one of those that users choose from: whatever runs
// the other partitions, it runs these.
Device& onnxruntime_device();

}  // namespace vartml::device
