// SPDX-License-Identifier: Apache-2.0
// The compiler's estimate beside what was measured, layer by layer.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>

#include "lib/tools/opstats/buffer_file.h"
#include "lib/tools/opstats/summary.h"
#include "lib/trace/descriptor.h"

namespace vartml::profiling {

// Reads the static estimate of one NPU partition: a *_mla_stats.yaml, ours or another compiler's.

struct EstimateLayer {
    uint64_t index = 0;  // its key in the file
    std::string name;
    uint64_t start_cycle = 0, end_cycle = 0;
    uint64_t cycles() const { return end_cycle - start_cycle + 1; }
};

struct Estimate {
    std::vector<EstimateLayer> layers;  // by index
    std::vector<std::string> warnings;  // sentences, each begins with `where`
};

// The two-level subset of YAML that such files are made of: an integer key per layer, below it
// name, start_cycle and end_cycle; comments, quoted names and any indentation. `where` begins each
// sentence. Gaps, overlaps and unknown keys are warnings. Errors: bad_model naming the line.
Result<Estimate> read_estimate(std::string_view text, const std::string& where);

struct LayerEstimates {
    std::vector<Estimate> of_partitions;  // one per NPU partition, in order
    uint64_t clock_hz = 0;                // of their cycles; 0: not known, only shares compare
};

// Of the whole batch, but for est_cycles; nullopt: not known.
struct LayerRow {
    Count index;
    std::string name, partition, engine;
    Real est_cycles, est_us, meas_us, meas_cycles, error_pct, est_share_pct, meas_share_pct,
        scaled_error_pct;
    Count macs;
    Real gops_per_s, read_kb, write_kb, gb_per_s;
    std::string bound;
};
std::span<const Column<LayerRow>> layer_columns();

struct LayersReport {
    std::vector<LayerRow> rows;      // the last two are "total" and "mean_abs_error"
    std::vector<std::string> lines;  // for the console
};
std::string csv_of(const LayersReport& report);

// Indices of the partitions that run on the NPU.
std::vector<uint32_t> npu_partitions(const Descriptor& descriptor);

// Of a buffer with operators. Errors: io; invalid_argument for another number of estimates than
// NPU partitions.
Result<LayersReport> build_layers(const BufferFile& file, const Descriptor& descriptor,
                                  const LayerEstimates& estimates);

}  // namespace vartml::profiling
