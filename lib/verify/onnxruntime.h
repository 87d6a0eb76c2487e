// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime as the reference, behind a child process (ort.cpp).
#pragma once
#include <map>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/verify/compare.h"

namespace vartml::verify {

class OnnxRuntime {
public:
    // Errors: not_found with what to install, where the child or the library is not there.
    static Result<OnnxRuntime> find();

    const std::string& version() const { return version_; }

    struct Named {
        std::string name;
        TensorData data;
    };
    // All outputs of the model by name, and the tensors `keep` of its graph. Errors: device with
    // ONNX Runtime's sentence; io.
    Result<std::map<std::string, TensorData>> run(const std::string& model,
                                                  const std::vector<Named>& inputs,
                                                  const std::vector<std::string>& keep = {}) const;

private:
    std::string program_, version_;
};

}  // namespace vartml::verify
