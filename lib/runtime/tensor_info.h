// SPDX-License-Identifier: Apache-2.0
// NpuTensorInfo: its text, its consistency, and its way from and to our own views.
#pragma once
#include <string>

#include <vartml/result.h>
#include <vartml/tensor.h>
#include <vart/vart_npu_tensor.hpp>

namespace vartml::runtime {

// The line of NpuTensorInfo::print(), without newline.
std::string to_text(const vart::NpuTensorInfo& info);

// Bytes of one element; 0 for UNKNOWN.
size_t element_size_bytes(vart::DataType type);

// Is the description consistent in itself? Errors: invalid_argument naming the tensor and the first
// fault in the order name, types, shape, strides, order, sizes.
Result<void> check_info(const vart::NpuTensorInfo& info);

// The description of `tensor` in one view; rank 0 becomes [1].
vart::NpuTensorInfo to_npu_info(const TensorInfo& tensor, vart::TensorDirection direction,
                                vart::TensorType type);

// The view that a description names: layout, type and dense strides; no quantisation.
TensorView to_view(const vart::NpuTensorInfo& info);

}  // namespace vartml::runtime
