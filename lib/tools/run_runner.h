// SPDX-License-Identifier: Apache-2.0
// From the MODEL of `vartml run` to runners of it.
#pragma once
#include <memory>
#include <string>

#include <vartml/result.h>
#include <vart/vart_runner_factory.hpp>

#include "lib/profiling/capture.h"
#include "lib/tools/run_options.h"

namespace vartml::tools {

// The compiled model's path: `model` itself, or what an ONNX file was compiled to.
Result<std::string> compiled_model(const std::string& model);

// Fills the views of `o` that --view leaves to the model: HW where every tensor of that direction
// has it.
Result<void> choose_views(RunOptions& o, const std::string& path);

// `sink` gets the captures of this runner; nullptr: there are none.
Result<std::shared_ptr<vart::Runner>> open_runner(
    const std::string& path, const RunOptions& o,
    const std::shared_ptr<profiling::CaptureSink>& sink);

template <typename T>
T property(const vart::Runner& runner, const char* key) {
    return std::any_cast<T>(runner.get_property(key));
}

// Why the last job failed.
Error run_error(const vart::Runner& runner);

}  // namespace vartml::tools
