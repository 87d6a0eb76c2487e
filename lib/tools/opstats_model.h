// SPDX-License-Identifier: Apache-2.0
// What `vartml opstats` needs of a compiled model: its descriptor and its estimates.
#pragma once
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/profiling/buffer/stats_format.h"
#include "lib/profiling/descriptor.h"
#include "lib/profiling/summary/layers.h"

namespace vartml::tools {

struct OpstatsModel {
    std::string path;
    profiling::Descriptor descriptor;
    profiling::format::Id descriptor_id{};
    // Texts of the model's own estimate files, one per NPU partition; empty for a descriptor alone.
    std::vector<std::string> estimates;
};

// `path` is a compiled model in any container, a folder that holds exactly one, or an extracted
// opstatsdesc.bin. Errors: those of reading it; not_found for a model without descriptor.
Result<OpstatsModel> open_opstats_model(const std::string& path);

// From files, or for "auto" the model's own. A file that is not the model's has cycles of a clock
// that nobody knows.
Result<profiling::LayerEstimates> read_layer_estimates(const OpstatsModel& model,
                                                       const std::vector<std::string>& files,
                                                       std::vector<std::string>& warnings);

}  // namespace vartml::tools
