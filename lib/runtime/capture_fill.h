// SPDX-License-Identifier: Apache-2.0
// From the stamps of a job to the capture that its sink gets.
#pragma once
#include <vector>

#include "lib/profiling/capture.h"
#include "lib/runtime/profiler.h"

namespace vartml::runtime {

// The descriptor lists the operators of the model.
bool has_operators(const ProfilerSetup& setup);

// The most that captures of this runner can hold; at least level_ports, below level_inference where
// the model was compiled for none.
unsigned level_limit(const ProfilerSetup& setup);

// Fills recording.capture with exactly what recording.level asks for; the rest is listed as missing
// with its reason. Allocates nothing from the second capture of the same level on.
void fill_capture(const ProfilerSetup& setup, const OperatorMap& map, Recording& recording);

}  // namespace vartml::runtime
