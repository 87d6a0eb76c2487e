// SPDX-License-Identifier: Apache-2.0
// The options of `vartml compile` about measuring, and the spellings of other vendors' tools.
#pragma once
#include <string>

#include <CLI/CLI.hpp>

#include "lib/compiler/compile.h"
#include "lib/tools/compat_arguments.h"

namespace vartml::tools {

struct StatsOptions {
    std::string events;      // as given
    std::string binary_dir;  // of --aic-binary-dir
};

void add_stats_options(CLI::App& app, compiler::CompileRequest& request, StatsOptions& options);
const CompatTable& compile_spellings();

// Checks what goes together and completes the request. Errors: invalid_argument.
Result<void> finish_stats(const StatsOptions& options, compiler::CompileRequest& request);

// What a user should know of what was asked for, in warnings; `batch` is the model's.
void warn_of_stats(const compiler::StatsRequest& stats, unsigned batch);

}  // namespace vartml::tools
