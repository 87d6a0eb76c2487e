// SPDX-License-Identifier: Apache-2.0
// Do the tensors of a call fit the model?
#pragma once
#include <string>
#include <vector>

#include <vart/vart_runner_factory.hpp>

#include "lib/runtime/tensor_tables.h"

namespace vartml::runtime {

using Tensors = std::vector<std::vector<vart::NpuTensor>>;

// SUCCESS, or INVALID_INPUT or INVALID_OUTPUT with a sentence that names batch index, tensor and
// difference.
struct Verdict {
    vart::StatusCode status = vart::StatusCode::SUCCESS;
    std::string text;
    explicit operator bool() const { return status == vart::StatusCode::SUCCESS; }
};

// What a call is held against.
struct Expected {
    const TensorTables* tables;
    vart::TensorType input_type, output_type;
    size_t batch_size;
};

// Touches no buffer; maps descriptors.
Verdict check_tensors(const Expected& expected, const Tensors& inputs, const Tensors& outputs);

}  // namespace vartml::runtime
