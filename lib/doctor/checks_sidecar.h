// SPDX-License-Identifier: Apache-2.0
// What a model needs beside its program: sidecar, picture input, feeds of the others, decoder.
#pragma once
#include <string>

#include <vartml/postprocess.h>

#include "lib/artifact/compiled_model.h"
#include "lib/doctor/checks.h"

namespace vartml::doctor {

// `asked` is the path that the user named, beside which a sidecar may lie; `path` is compiled.
void check_sidecar(Examination& e, const std::string& asked, const std::string& path,
                   const artifact::CompiledModel& model);

// The input of a model that takes the picture, and the size of that.
struct PictureInput {
    const TensorInfo* input;
    uint32_t width, height;
};
// Runs the model once and looks at the numbers that `decoder` gets.
void check_numbers(Examination& e, const std::string& path, const artifact::CompiledModel& model,
                   const ModelInfo& info, const PictureInput& picture, Decoder decoder);

}  // namespace vartml::doctor
