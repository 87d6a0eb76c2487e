// SPDX-License-Identifier: Apache-2.0
// Decoders of others, behind the C interface <vartml/decoder.h>.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "lib/vision/head.h"

namespace vartml::vision {

// Whether what a user named as decoder is a file, and no family.
inline bool is_library(std::string_view decoder) {
    return decoder.find('/') != decoder.npos;
}

// Loads the shared object and has it make a decoder for the outputs. It stays loaded while the
// decoder lives. Errors: dec-library, naming the file.
Result<std::unique_ptr<Head>> open_library(const HeadRequest& request, const std::string& file);

}  // namespace vartml::vision
