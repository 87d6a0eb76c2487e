// SPDX-License-Identifier: Apache-2.0
// What a model needs beside its program: sidecar, picture input, feeds of the others, decoder.
#pragma once
#include <string>

#include "lib/artifact/compiled_model.h"
#include "lib/doctor/checks.h"

namespace vartml::doctor {

// `asked` is the path that the user named, beside which a sidecar may lie.
void check_sidecar(Examination& e, const std::string& asked, const artifact::CompiledModel& model);

}  // namespace vartml::doctor
