// SPDX-License-Identifier: Apache-2.0
// The report of a compile: final-vaiml-pass-summary.txt and .json.
#pragma once
#include <string>

#include "lib/model/compiled_model.h"

namespace vartml::compiler {

// final-vaiml-pass-summary.txt: the lines that the format gives, then ours.
std::string summary_text(const artifact::CompiledModel& model);
std::string summary_json(const artifact::CompiledModel& model);

}  // namespace vartml::compiler
