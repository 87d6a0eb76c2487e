// SPDX-License-Identifier: Apache-2.0
// The compiler's estimate beside what was measured, layer by layer.
#pragma once
#include <span>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/profiling/buffer/buffer_file.h"
#include "lib/profiling/descriptor.h"
#include "lib/profiling/estimate.h"

namespace vartml::profiling {

struct LayerEstimates {
    std::vector<Estimate> of_partitions;  // one per NPU partition, in order
    uint64_t clock_hz = 0;                // of their cycles; 0: not known, only shares compare
};

struct LayersReport {
    std::string csv;
    std::vector<std::string> lines;  // for the console
};

// Indices of the partitions that run on the NPU.
std::vector<uint32_t> npu_partitions(const Descriptor& descriptor);

// Of a buffer with operators. Errors: io; invalid_argument for another number of estimates than
// NPU partitions.
Result<LayersReport> build_layers(const BufferFile& file, const Descriptor& descriptor,
                                  const LayerEstimates& estimates);

}  // namespace vartml::profiling
