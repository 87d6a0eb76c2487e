// SPDX-License-Identifier: Apache-2.0
// What `vartml inspect` says of a compiled model, as text and as JSON.
#pragma once
#include <string>
#include <vector>

#include "lib/model/compiled_model.h"

namespace vartml::tools {

enum class JsonForm {
    numbers,  // all keys, numbers as numbers
    compat,   // the keys of AMD's model-info dump, every number a string as there
};

// `file` is the path as the user gave it.
std::string inspect_text(const artifact::CompiledModel& model, const std::string& file);
std::string inspect_json(const artifact::CompiledModel& model, const std::string& file,
                         JsonForm form);

// The _mpk.json of another compiler's archive, so that no byte of it reaches a terminal as it is.
std::string inspect_foreign(const std::string& mpk);

// Differences in batch size, layout, shape, type and quantisation between the model and a
// model-info dump, one line each: "input 'x' hw dtype: is bf16, expected int8". The dump is one of
// inspect_json, or of a board; numbers in it may be texts. Errors: invalid_argument for a file that
// is no dump, naming file and key; not_found, io.
Result<std::vector<std::string>> inspect_differences(const artifact::CompiledModel& model,
                                                     const std::string& dump_file);

}  // namespace vartml::tools
