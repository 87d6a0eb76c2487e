// SPDX-License-Identifier: Apache-2.0
// From TensorProto to type and bytes.
#pragma once
#include <string>

#include <vartml/result.h>

#include "lib/graph/graph.h"
#include "lib/onnx/model_file.h"

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

}  // namespace vartml::onnx
