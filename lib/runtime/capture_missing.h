// SPDX-License-Identifier: Apache-2.0
// What a capture does not hold, each with its reason.
#pragma once
#include "lib/runtime/profiler.h"

namespace vartml::runtime {

// The descriptor lists the operators of the model.
bool has_operators(const ProfilerSetup& setup);

// The most that captures of this runner can hold; below level_inference where the model was
// compiled for none.
unsigned level_limit(const ProfilerSetup& setup);

// Lists in the filled recording.capture what is missing. Allocates where that differs from the
// capture before.
void fill_missing(const ProfilerSetup& setup, const OperatorMap& map, Recording& recording);

}  // namespace vartml::runtime
