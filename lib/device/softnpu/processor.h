// SPDX-License-Identifier: Apache-2.0
// What the software NPU finds of the processor. Also linked into the program vartml, whose doctor
// tells it.
#pragma once
#include <string>

namespace vartml::softnpu {

// Whether the processor multiplies bf16 natively. Others compute floats in f32.
bool has_bf16_products();
// Whether the processor adds four products of 8 bits without saturating in between (VNNI). Others
// compute in floats.
bool has_int8_products();

// What oneDNN uses of the processor, such as "avx512_core_vnni", and its version, such as "3.7.1".
std::string instruction_set();
std::string onednn_version();

}  // namespace vartml::softnpu
