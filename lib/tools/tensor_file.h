// SPDX-License-Identifier: Apache-2.0
// Tensors from files: NumPy's .npy and ONNX's .pb.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <vartml/result.h>
#include <vartml/tensor.h>

#include "lib/tools/verify/compare.h"

namespace vartml::tools {

using verify::TensorData;

// Errors: not_found, io; invalid_argument naming what is wrong with the file, which is no fault of
// a model.
Result<TensorData> read_tensor(const std::string& path);

// The bytes of a .npy file. `what` begins each sentence. Errors: bad_model, unsupported.
Result<TensorData> parse_npy(const std::string& bytes, const std::string& what);

// The same the other way: little endian, in the order of C. NumPy has no bfloat16: those become
// float32.
std::string npy_of(const TensorData& data);

// `<folder>/<stem>_<index>` with the ending .npy or .pb, whichever exists; nothing if none does.
std::optional<std::string> find_tensor_file(const std::string& folder, const std::string& stem,
                                            size_t index);

// Data for inputs that nobody gave.

// The same data in every run and on every machine: floats in [0, 1), bytes over their range, wider
// integers 0 or 1, which are often indices.
std::vector<std::byte> random_bytes(DataType type, size_t size_bytes, unsigned seed);

}  // namespace vartml::tools
