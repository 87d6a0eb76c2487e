// SPDX-License-Identifier: Apache-2.0
// `vartml run --profiling-overhead`: blocks of jobs with and without recording, in turn.
#pragma once
#include <vartml/result.h>

#include "lib/tools/overhead.h"
#include "lib/tools/run_measure.h"
#include "lib/tools/run_options.h"

namespace vartml::tools {

// Of the median round trip. The activation's collector decides the level, which is `level`.
Result<Overhead> measure_overhead(const RunOptions& o, Activation& activation, unsigned level);

}  // namespace vartml::tools
