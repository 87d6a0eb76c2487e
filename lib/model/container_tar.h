// SPDX-License-Identifier: Apache-2.0
// The .tar.gz of a compiled model.
#pragma once
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/model/entries.h"

namespace vartml::artifact {

// Writes the archive to an open file: `manifest` is model.vmf, `entries` are all others, which
// point into `model`. Errors: io naming `path`; internal for a model that a flat archive cannot
// hold; unsupported for one that readers would refuse, with the way out.
Result<void> write_tar_to(int fd, const std::string& path, const CompiledModel& model,
                          const std::vector<Entry>& entries, const std::string& manifest);

}  // namespace vartml::artifact
