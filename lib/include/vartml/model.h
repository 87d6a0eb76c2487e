// SPDX-License-Identifier: Apache-2.0
// What a compiled model says of itself, read without a device.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <vartml/result.h>
#include <vartml/tensor.h>

namespace vartml {

/// The description of a compiled model (directory with `vaiml_par_0`, directory with one `.rai`, a
/// `.rai` or a `.tar.gz`). Thread-safety: immutable.
struct ModelDescription {
    std::string path;       ///< as given to open_model
    std::string format;     ///< "directory", "rai" or "tar"
    std::string name;       ///< file name of the ONNX model without extension
    std::string signature;  ///< 32 hexadecimal digits over the ONNX bytes
    std::string device;     ///< what it was compiled for, such as "softnpu"
    std::string target;     ///< program target, such as "softnpu-1"
    std::string tool_version;
    bool cpu_partitioned = false;
    unsigned desired_batch_size = 1, actual_batch_size = 1;
    unsigned npu_operators = 0, cpu_operators = 0;
    std::string first_cpu_operator;  ///< "TopK node 'topk_3' (unsupported-operator)", or ""
    std::vector<TensorInfo> inputs, outputs;  ///< in the order of the ONNX graph
    std::string modelinfo;                    ///< text of the sidecar entry, or ""
};

/// Reads and verifies the description; weights and programs are not touched. A `.tar.gz` is
/// unpacked without them into a private temporary folder, which is gone afterwards. Errors:
/// not_found and io with the system's reason, bad_model for a damaged or foreign file (the sentence
/// names the part, found and expected), unsupported for another format version.
Result<ModelDescription> open_model(const std::string& path);

}  // namespace vartml
