// SPDX-License-Identifier: Apache-2.0
// The child's side of protocol.h; part of the program vartml-onnxruntime.
#pragma once
#include <onnxruntime/onnxruntime_c_api.h>

namespace vartml::onnxruntime {

// Tells the parent that there is no ONNX Runtime.
void tell_absent(const char* reason);

// Serves until the parent has closed its end. Never returns.
[[noreturn]] void serve(const OrtApi* api, const char* version);

}  // namespace vartml::onnxruntime
