// SPDX-License-Identifier: Apache-2.0
// A configuration of vvas_xinfer as properties of our elements and a sidecar.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include <vartml/result.h>

#include "lib/tools/vvas_config.h"

namespace vartml::tools {

struct VvasImportOptions {
    std::string model;    // instead of the configuration's
    std::string labels;   // file, instead of the configuration's
    std::string input;    // name of the picture input; "" = the model's own, if it is there
    std::string sidecar;  // where the sidecar goes
};

struct VvasImport {
    std::string launch;  // one line
    std::string sidecar;
    std::vector<std::string> warnings;
};

// Errors: invalid_argument naming the file and the key; those of read_labels.
Result<VvasImport> import_vvas_config(const VvasConfig& config, const VvasImportOptions& options);

}  // namespace vartml::tools
