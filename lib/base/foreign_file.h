// SPDX-License-Identifier: Apache-2.0
// Files that people take for a model: other frameworks' models, pictures, films, pointers, pages.
#pragma once
#include <optional>
#include <string>

#include "lib/base/file.h"

namespace vartml {

// Whether the bytes begin as exporters begin an ONNX file.
bool looks_like_onnx(Bytes bytes);

// What the file is and the way out, as in "is a TensorFlow Lite model; convert it to ONNX …": by
// its first bytes, else by the end of its name. Nothing for a file that may be an ONNX model or one
// of ours, and for an unknown one. The one place for these sentences, whoever opened the file.
std::optional<std::string> describe_foreign(const std::string& path, Bytes bytes);

}  // namespace vartml
