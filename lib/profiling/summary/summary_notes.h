// SPDX-License-Identifier: Apache-2.0
// The notes at the end of a summary.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "lib/profiling/buffer/buffer_file.h"
#include "lib/profiling/descriptor.h"
#include "lib/profiling/summary/summary_text.h"
#include "lib/profiling/summary/verdict.h"

namespace vartml::profiling {

// What the builder of the rows left out or could not say.
struct Gaps {
    std::set<std::string> engines_without_pcycles;
    std::vector<std::string> unstamped;  // "c0t1"
    bool has_small_outputs = false, has_other_ports = false, has_no_activate = false;
    uint64_t left_out = 0;
};

Result<std::vector<std::string>> summary_notes(const BufferFile& file, const Descriptor& descriptor,
                                               const Gaps& gaps, const Verdict& verdict,
                                               uint64_t ucycle_hz);

}  // namespace vartml::profiling
