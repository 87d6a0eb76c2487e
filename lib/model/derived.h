// SPDX-License-Identifier: Apache-2.0
// Entries that repeat parts of the manifest for people and other tools.
#pragma once
#include <string>
#include <vector>

#include "lib/model/compiled_model.h"

namespace vartml::artifact {

// partition-info.json, flexmlrt-hsi.json, buffer_info.json and NAME_mla_stats.yaml of each NPU
// partition, fail_safe_summary.json, and connectivity_metadata.json of a CPU-partition compilation.
std::vector<File> derived_files(const CompiledModel& model);

// Name of the static estimate of an NPU partition, "vaiml_par_0/0/NAME_mla_stats.yaml".
std::string estimate_entry(const CompiledModel& model, const Partition& partition);

// Whole percent of the operations that run on the NPU.
unsigned offload_percent(const Summary& summary);

}  // namespace vartml::artifact
