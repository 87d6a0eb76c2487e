// SPDX-License-Identifier: Apache-2.0
// What an output of a compiled model was computed in: the tolerance of a comparison depends on it.
#pragma once
#include <optional>
#include <string>

#include <vart/vart_runner_factory.hpp>

#include "lib/artifact/compiled_model.h"

namespace vartml::verify {

// Scale of the dequantise that made an output, seen through operators that only move elements;
// nothing where none did.
std::optional<double> step_of(const artifact::CompiledModel& model, const vart::Runner& runner,
                              const std::string& output);

// "bf16" or "fp16" where the machine computes so, or where the program reads or writes a border
// tensor so; else what the runner says.
std::string computed_type(const vart::Runner& runner, const std::string& output);

}  // namespace vartml::verify
