// SPDX-License-Identifier: Apache-2.0
// Where the runtimes differ that the plugins can be built on (Meson option `runtime`): what they
// take, and who describes a model. One source file per runtime.
#pragma once
#include <optional>
#include <string>

#include <vartml/model.h>
#include <vartml/result.h>

#include "gst/support/error.h"
#include "gst/support/vart_runner.h"

namespace vartml::gst {

// What the runtime cannot do of what the properties `model`, `device` and `runner-options` ask for.
// `is_directory`: the model is one, whatever its name ends with.
std::optional<Failure> refuse_request(const std::string& model, bool is_directory,
                                      const std::string& device, const RunnerOptions& options);

// The description of a compiled model. Errors: as vartml::open_model, or what the runtime says of a
// model that it cannot load; invalid_argument for the options.
vartml::Result<vartml::ModelDescription> describe_model(const std::string& path,
                                                        const RunnerOptions& options);

// Why a trace cannot have the operators of this runtime; nullptr: it can.
const char* operators_not_reported();

}  // namespace vartml::gst
