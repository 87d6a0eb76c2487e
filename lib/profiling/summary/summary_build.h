// SPDX-License-Identifier: Apache-2.0
// The summary of a raw stats buffer.
#pragma once
#include <vartml/result.h>

#include "lib/profiling/buffer/buffer_file.h"
#include "lib/profiling/descriptor.h"
#include "lib/profiling/summary/summary_text.h"
#include "lib/profiling/summary/verdict.h"

namespace vartml::profiling {

// Holds the identities. The descriptor must be the buffer's (check_match). `verdict` ends the
// notes. Errors: io; bad_model for a buffer of which no thread ran.
Result<SummaryText> build_summary(const BufferFile& file, const Descriptor& descriptor,
                                  const Verdict& verdict, uint64_t ucycle_hz = default_ucycle_hz);

}  // namespace vartml::profiling
