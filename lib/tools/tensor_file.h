// SPDX-License-Identifier: Apache-2.0
// Tensors from files: NumPy's .npy and ONNX's .pb.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <vartml/result.h>
#include <vartml/tensor.h>

namespace vartml::tools {

// Elements dense row-major.
struct TensorData {
    DataType type = DataType::unknown;
    std::vector<int64_t> shape;
    std::vector<std::byte> bytes;
};

// Errors: not_found, io, bad_model naming what is wrong with the file, unsupported for another
// ending or type.
Result<TensorData> read_tensor(const std::string& path);

// The bytes of a .npy file. `what` begins each sentence.
Result<TensorData> parse_npy(const std::string& bytes, const std::string& what);

// `<folder>/<stem>_<index>` with the ending .npy or .pb, whichever exists; nothing if none does.
std::optional<std::string> find_tensor_file(const std::string& folder, const std::string& stem,
                                            size_t index);

}  // namespace vartml::tools
