// SPDX-License-Identifier: Apache-2.0
// From the stamps of a job to the capture that its sink gets.
#pragma once
#include "lib/run/vart/profiler.h"

namespace vartml::runtime {

// Fills recording.capture with exactly what recording.level asks for; the rest is listed as missing
// with its reason. Allocates nothing from the second capture of the same kind on.
void fill_capture(const ProfilerSetup& setup, const OperatorMap& map, Recording& recording);

// What a capture does not hold, each with its reason.

// The descriptor lists the operators of the model.
bool has_operators(const ProfilerSetup& setup);

// The most that captures of this runner can hold; below level_inference where the model was
// compiled for none.
unsigned level_limit(const ProfilerSetup& setup);

// Lists in the filled recording.capture what is missing. Allocates where that differs from the
// capture before.
void fill_missing(const ProfilerSetup& setup, const OperatorMap& map, Recording& recording);

}  // namespace vartml::runtime
