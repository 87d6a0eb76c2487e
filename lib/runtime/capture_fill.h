// SPDX-License-Identifier: Apache-2.0
// From the stamps of a job to the capture that its sink gets.
#pragma once
#include "lib/runtime/profiler.h"

namespace vartml::runtime {

// Fills recording.capture with exactly what recording.level asks for; the rest is listed as missing
// with its reason. Allocates nothing from the second capture of the same kind on.
void fill_capture(const ProfilerSetup& setup, const OperatorMap& map, Recording& recording);

}  // namespace vartml::runtime
