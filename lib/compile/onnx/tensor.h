// SPDX-License-Identifier: Apache-2.0
// From TensorProto to type and bytes.
#pragma once
#include <string>

#include <vartml/result.h>

#include "lib/compile/onnx/model_file.h"
#include "lib/graph/graph.h"

namespace vartml::onnx {

// Element type of a number of TensorProto.DataType; unknown for strings, complex numbers and 8-bit
// floats. The 4-bit integers become int8 and uint8, one element per byte.
DataType data_type(int32_t elem_type);
std::string elem_type_name(int32_t elem_type);  // "FLOAT16"

struct TensorValue {
    graph::Type type;
    graph::Constant constant;
};
// `what` names the tensor in errors: "initialiser 'w'". Errors: bad_model, unsupported, io.
Result<TensorValue> read_tensor(ModelFile& file, const pb::TensorProto& tensor,
                                const std::string& what);

// A file that holds one TensorProto, as ONNX keeps test data in (input_0.pb).

// Errors: not_found, io, bad_model, unsupported (external data, strings).
Result<TensorValue> read_tensor_file(const std::string& path);

}  // namespace vartml::onnx
