// SPDX-License-Identifier: Apache-2.0
// The scene and the model that come with the project, for programs that are given none.
#pragma once
#include <string>

#include <vartml/result.h>

#include "pipelines/apps/demo/record.h"

namespace demo {

// The QR-code finder: where VARTML_DEMO_MODEL says, else where it is installed.
std::string own_model();

// Makes the folder and those above it. Errors: io.
vartml::Result<void> make_folder(const std::string& folder);

// Renders and encodes the scene into `file`; `backdrop` is a picture or clip behind the codes, or
// "".
vartml::Result<Recording> record_scene(const std::string& backdrop, double seconds,
                                       const std::string& file);

}  // namespace demo
