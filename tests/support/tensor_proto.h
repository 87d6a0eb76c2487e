// SPDX-License-Identifier: Apache-2.0
// Reads the tensors of ONNX test data (files output_0.pb …) without protobuf.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vartml::test {

struct ProtoTensor {
    std::string name;
    std::vector<int64_t> dims;
    int data_type = 0;         // of TensorProto: 1 float, 7 int64, …
    std::vector<uint8_t> raw;  // little-endian elements, whichever field held them

    // The elements as floats; empty unless data_type is 1.
    std::vector<float> floats() const;
};

// Nothing when the file is absent or is no TensorProto.
std::optional<ProtoTensor> read_tensor_proto(const std::string& file);

// Folder of the shared test data, "" when it is absent.
std::string shared_folder();

}  // namespace vartml::test
