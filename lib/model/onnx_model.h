// SPDX-License-Identifier: Apache-2.0
// The ONNX models inside programs for ONNX Runtime, looked at without ONNX's own library.
#pragma once
#include <optional>
#include <string>

#include "lib/base/file.h"

namespace vartml::artifact {

// What is wrong with the bytes of a serialised ModelProto, to be read behind "a model that";
// nothing for one that may be handed to ONNX Runtime: its fields are whole, and no tensor in it
// lies in another file, so that a foreign model makes nobody read what lies beside it.
std::optional<std::string> fault_of_onnx_model(Bytes model);

}  // namespace vartml::artifact
