// SPDX-License-Identifier: Apache-2.0
// Tensors from files: NumPy's .npy and ONNX's .pb.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include <vartml/result.h>

#include "lib/verify/compare.h"

namespace vartml::tools {

using verify::TensorData;

// Errors: not_found, io, bad_model naming what is wrong with the file, unsupported for another
// ending or type.
Result<TensorData> read_tensor(const std::string& path);

// The bytes of a .npy file. `what` begins each sentence.
Result<TensorData> parse_npy(const std::string& bytes, const std::string& what);

// `<folder>/<stem>_<index>` with the ending .npy or .pb, whichever exists; nothing if none does.
std::optional<std::string> find_tensor_file(const std::string& folder, const std::string& stem,
                                            size_t index);

}  // namespace vartml::tools
