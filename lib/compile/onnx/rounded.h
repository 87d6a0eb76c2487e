// SPDX-License-Identifier: Apache-2.0
// The twin of a model that computes as an ideal device of bf16 does: exactly, but every tensor is
// rounded.
#pragma once
#include <string>

#include <vartml/result.h>

namespace vartml::onnx {

// Writes the twin of `path` to `out`: the same inputs and outputs, each float tensor of the main
// graph rounded to bf16, to the nearest, by operators of its own, so that any runtime computes it.
// Inside subgraphs nothing is rounded, and no parameter that says how much or where (sizes of
// Resize, scales of codes). Errors: as import_onnx for a file that cannot be read; unsupported for
// a model with external data, and where types are not known, neither to ONNX
// nor to the importer; io.
Result<void> write_rounded(const std::string& path, const std::string& out);

}  // namespace vartml::onnx
