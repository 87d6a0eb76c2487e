// SPDX-License-Identifier: Apache-2.0
// Tensors of `vartml run`: inputs from files or pseudo-random, outputs compared with files.
#pragma once
#include <map>
#include <string>
#include <vector>

#include <vartml/result.h>
#include <vart/vart_runner_factory.hpp>

#include "lib/tools/run_options.h"

namespace vartml::tools {

using TensorBatch = std::vector<std::vector<vart::NpuTensor>>;

// Of one job; by frame of the batch.
struct RunBuffers {
    TensorBatch inputs, outputs;
};

// The file for each input that has one: --inputs, then --input.
Result<std::map<std::string, std::string>> input_files(const RunOptions& o,
                                                       const vart::Runner& runner);

// A whole batch with the same data in each frame: of the files, else pseudo-random and the same
// each time.
Result<RunBuffers> make_buffers(const RunOptions& o, const vart::Runner& runner,
                                const std::map<std::string, std::string>& files);

// Prints a line per output of --expect; whether all are as expected.
Result<bool> check_outputs(const RunOptions& o, const std::string& path, vart::Runner& runner,
                           TensorBatch& outputs);

}  // namespace vartml::tools
