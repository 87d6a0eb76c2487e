// SPDX-License-Identifier: Apache-2.0
// The generated classes of the ONNX format under a short name.
#pragma once
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <onnx/onnx_pb.h>
#pragma GCC diagnostic pop

namespace vartml::onnx {
namespace pb = ::onnx;
}
