// SPDX-License-Identifier: Apache-2.0
// NAME_mpk.json: what a .tar.gz holds, for other tools. Plugins are the partitions, linked by
// tensor names.
#pragma once
#include <set>
#include <string>
#include <string_view>

#include "lib/model/checks.h"
#include "lib/model/compiled_model.h"

namespace vartml::artifact {

// The text follows from the manifest alone; no graph is looked at.
std::string mpk_text(const CompiledModel& model);

// Checks keys, types, the lists of what is allowed, the files that it names (`files` are those of
// the archive) and that it says what the manifest says. The text must be JSON that json_fault()
// lets pass.
bool check_mpk(Checks& checks, std::string_view text, const CompiledModel& model,
               const std::set<std::string>& files);

}  // namespace vartml::artifact
