// SPDX-License-Identifier: Apache-2.0
// The twin of a quantised model whose products of 8 bits saturate nowhere.
#pragma once
#include <string>

#include <vartml/result.h>

namespace vartml::onnx {

// x86 processors without VNNI add two products of uint8 and int8 in 16 bits, which saturate: 255 ·
// 127 · 2 is more than 32767. ONNX Runtime uses these instructions for weights of int8, other ones
// for weights of uint8. The twin has constant weights of int8 as uint8, 128 added to them and to
// their zero points, which changes no result. Writes it to `out` where `path` has such weights in
// its main graph; false: it has none, and nothing is written. Errors: as import_onnx for a file
// that cannot be read; unsupported for a model with external data; io.
Result<bool> write_exact_products(const std::string& path, const std::string& out);

}  // namespace vartml::onnx
