// SPDX-License-Identifier: Apache-2.0
#include "lib/artifact/compiled_model.h"

#include <algorithm>

namespace vartml::artifact {

const std::string* CompiledModel::find_file(std::string_view name) const {
    const auto at = std::ranges::find(files, name, &File::name);
    return at == files.end() ? nullptr : &at->bytes;
}

}  // namespace vartml::artifact
